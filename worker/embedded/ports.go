package embedded

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// ports are the TCP ports of one run; ui is 0 without a Web UI.
type ports struct {
	frontend, ui, history, matching, worker int
}

// choosePorts picks the ports of a run and checks that each can be listened on: a listen that fails inside the server or
// the UI ends the process. last is what the folder's last run used.
func choosePorts(o Options, last Endpoint) (p ports, err error) {
	picker := portPicker{host: o.Host}
	defer picker.release()

	if p.frontend, err = picker.pick(o.Port, lastPort("//"+last.Address)); err != nil {
		return p, fmt.Errorf("port: %w", err)
	}
	if o.UIPort != NoUI {
		if p.ui, err = picker.pick(o.UIPort, lastPort(last.UI)); err != nil {
			return p, fmt.Errorf("UI port: %w", err)
		}
	}
	for _, internal := range []*int{&p.history, &p.matching, &p.worker} {
		if *internal, err = picker.pick(0, 0); err != nil {
			return p, fmt.Errorf("port of an internal service: %w", err)
		}
	}
	return p, nil
}

// lastPort is the port in a URL, 0 when there is none.
func lastPort(rawURL string) int {
	u, err := url.Parse(rawURL)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}

// portPicker holds a listener on every port it has picked until release, so that no two are the same.
type portPicker struct {
	host string
	held []net.Listener
}

// pick returns wanted if it is free; for wanted 0 preferred if that is free, else any free port.
func (p *portPicker) pick(wanted, preferred int) (int, error) {
	if wanted != 0 {
		port, err := p.listen(wanted)
		if err != nil {
			return 0, fmt.Errorf("%w; stop what listens there or choose another port (0 for any)", err)
		}
		return port, nil
	}
	if port, err := p.listen(preferred); err == nil {
		return port, nil
	}
	return p.listen(0)
}

func (p *portPicker) listen(port int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(p.host, strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	p.held = append(p.held, l)
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (p *portPicker) release() {
	for _, l := range p.held {
		_ = l.Close()
	}
}
