package receipt

import (
	"crypto/sha256"
	"encoding/hex"
	"math/bits"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// CanonicalText is the text of an answer in the one spelling that is compared and hashed: the parts (the texts of the
// turn's role nodes, without headers and buttons) joined by white space, in NFC, every run of Unicode white space one
// space, none at either end.
func CanonicalText(parts []string) string {
	text, _ := canonical(parts, nil)
	return string(text)
}

// buffers are used again, because most answers of a run have about the same length.
var buffers sync.Pool

// TextDigest is the sha256, in hex, of CanonicalText(parts).
func TextDigest(parts []string) string {
	buffer, ok := buffers.Get().(*[]byte)
	if !ok {
		buffer = new([]byte)
	}
	defer buffers.Put(buffer)
	var text []byte
	text, *buffer = canonical(parts, *buffer)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// canonical writes the canonical text into the buffer, which it replaces when it is too small.
func canonical(parts []string, buffer []byte) (text, grown []byte) {
	size := 0
	for _, p := range parts {
		size += len(p) + 1
	}
	if len(buffer) < size {
		buffer = make([]byte, size)
	}
	c := collapser{out: buffer, space: true}
	for _, p := range parts {
		c.add(p)
		c.blank()
	}
	if text = buffer[:c.n]; c.n > 0 {
		text = text[:c.n-1] // the blank after the last word
	}
	if c.decompose {
		text = norm.NFC.Bytes(text)
	}
	return text, buffer
}

// collapser copies text and turns runs of white space into one space each. It looks at words of eight bytes, because the
// digest of every answer needs it and it should not cost more than the hashing.
type collapser struct {
	out       []byte
	n         int
	space     bool // the last byte written is a space, or nothing was written yet
	decompose bool // a rune was seen that NFC may change
}

const (
	word  = 8
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

func (c *collapser) blank() {
	if !c.space {
		c.out[c.n] = ' '
		c.n++
		c.space = true
	}
}

// add appends s. It copies whole spans, up to the next white space that has to go.
func (c *collapser) add(s string) {
	start, i := 0, 0
	for i < len(s) {
		switch b := s[i]; {
		case b-'!' < 0x5e: // printable ASCII
			i += settled(s[i:])
		case b == ' ' && i > start && s[i-1] != ' ':
			i++
		case b == ' ' || b-'\t' < 5:
			c.write(s[start:i])
			c.blank()
			for i++; i < len(s) && (s[i] == ' ' || s[i]-'\t' < 5); i++ {
			}
			start = i
		case b < utf8.RuneSelf: // another control character
			i++
		default:
			inert := inertPrefix(s[i:])
			if i += inert; inert > 0 {
				continue
			}
			r, size := utf8.DecodeRuneInString(s[i:])
			if unicode.IsSpace(r) {
				c.write(s[start:i])
				c.blank()
				start = i + size
			} else {
				c.decompose = true
			}
			i += size
		}
	}
	c.write(s[start:])
}

func (c *collapser) write(s string) {
	if s != "" {
		c.n += copy(c.out[c.n:], s)
		c.space = s[len(s)-1] == ' '
	}
}

// settled is the length of a prefix of s, which begins with printable ASCII, that is canonical as it stands: more of that,
// without a second space. It looks at two words at a time. A lane of 8 bits answers in its high bit: set when the byte is
// not ASCII, is below a space, or is a space after a space. Lanes after the first set one may be wrong, and are not used.
func settled(s string) int {
	i := 1
	for ; i+2*word <= len(s); i += 2 * word {
		t := s[i-1 : i+2*word]
		w, x := load(t, 1), load(t, 1+word)
		first := (w | load(t, 0)) - (' '+1)*ones | (w - ' '*ones) | w
		second := (x | load(t, word)) - (' '+1)*ones | (x - ' '*ones) | x
		if (first|second)&highs == 0 {
			continue
		}
		if first&highs != 0 {
			return i + bits.TrailingZeros64(first&highs)/8
		}
		return i + word + bits.TrailingZeros64(second&highs)/8
	}
	return i
}

// inertPrefix is the length of the inert runes that s begins with.
func inertPrefix(s string) int {
	i := 0
	for i < len(s) && s[i] >= utf8.RuneSelf {
		if s[i]-0xE4 < 6 {
			if n := ideographs(s[i:]); n > 0 {
				i += n
				continue
			}
		}
		r, size := decode(s[i:])
		if !inert(r) {
			break
		}
		i += size
	}
	return i
}

// decode is utf8.DecodeRuneInString with a short way for three bytes, the length of most runes beyond ASCII.
func decode(s string) (rune, int) {
	if len(s) > 2 && s[0]&0xF0 == 0xE0 && s[1]&0xC0 == 0x80 && s[2]&0xC0 == 0x80 {
		if r := rune(s[0]&0x0F)<<12 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F); r >= 0x800 && r&0xF800 != 0xD800 {
			return r, 3
		}
	}
	return utf8.DecodeRuneInString(s)
}

// ideographs is the length of the pairs of runes of U+4000..U+9FFF that s begins with. They are never white space and
// always NFC. Each has a byte of 0xE4..0xE9 and two of 0x80..0xBF.
func ideographs(s string) int {
	i := 0
	for ; i+word <= len(s); i += 6 {
		w := load(s, i)
		lead := w & 0x0F00000F
		lead = (lead + 0x7C00007C) &^ (lead + 0x76000076) & 0x80000080 // 4..9
		if w&0xC0C0F0C0C0F0 != 0x8080E08080E0 || lead != 0x80000080 {
			break
		}
	}
	return i
}

// inert tells, for the usual runes beyond ASCII, that they are no white space and that NFC leaves them alone wherever they
// stand: they are composed, start a new character and combine with nothing before them. False means "look closer".
func inert(r rune) bool {
	switch {
	case r < 0x300:
		return r > 0xA0
	case r < 0x2000:
		return r >= 0x400 && r <= 0x482 || r >= 0x48A && r <= 0x52F || r >= 0x5D0 && r <= 0x5EA || r >= 0x620 && r <= 0x64A
	case r < 0x3000:
		return r >= 0x2010 && r <= 0x2027 || r >= 0x2030 && r <= 0x205E || r >= 0x20A0 && r <= 0x20BF ||
			r >= 0x2190 && r <= 0x2328 || r >= 0x2460 && r <= 0x27BF
	case r < 0x10000:
		return r > 0x3000 && r <= 0x3029 || r >= 0x3030 && r <= 0x3096 || r >= 0x30A0 && r <= 0x9FFF ||
			r >= 0xAC00 && r <= 0xD7A3 || r == 0xFE0F || r >= 0xFF00 && r <= 0xFF9D
	}
	return r >= 0x1F300 && r <= 0x1FAFF
}

func load(s string, i int) uint64 {
	s = s[i : i+word]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
