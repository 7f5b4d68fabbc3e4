package checks

import "fmt"

// What is kept and looked at of one output: its beginning and its end.
const (
	maxHead = 256 << 10
	maxTail = 768 << 10
)

// output takes an output of any length in bounded memory.
type output struct {
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the next byte of the ring goes
	total int64
}

// Write never fails.
func (o *output) Write(p []byte) (int, error) {
	n := len(p)
	o.total += int64(n)
	if room := maxHead - len(o.head); room > 0 {
		taken := min(room, len(p))
		o.head, p = append(o.head, p[:taken]...), p[taken:]
	}
	if len(p) > maxTail {
		p = p[len(p)-maxTail:]
	}
	if room := maxTail - len(o.tail); room > 0 {
		taken := min(room, len(p))
		o.tail, p = append(o.tail, p[:taken]...), p[taken:]
	}
	for len(p) > 0 {
		taken := copy(o.tail[o.next:], p)
		p, o.next = p[taken:], (o.next+taken)%maxTail
	}
	return n, nil
}

// kept is the output, with a line in the place of what was left out.
func (o *output) kept() []byte {
	all := append([]byte(nil), o.head...)
	if left := o.total - int64(len(o.head)+len(o.tail)); left > 0 {
		all = append(all, fmt.Sprintf("\n… %d bytes left out …\n", left)...)
	}
	all = append(all, o.tail[o.next:]...)
	return append(all, o.tail[:o.next]...)
}
