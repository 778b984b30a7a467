package isolated

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// listenTries is how many free ports are tried when any will do.
const listenTries = 16

// listenLoopback listens on one port of every loopback address that the name
// localhost can mean, so that no other program of this machine can be found
// under the sign-in surface's origin. It refuses when one of them is taken.
// The first listener is that of the address, a loopback host:port.
func listenLoopback(address string) ([]net.Listener, error) {
	asked, err := netip.ParseAddrPort(address)
	if err != nil || asked.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) && asked.Addr() != netip.IPv6Loopback() {
		return nil, fmt.Errorf("%s is not 127.0.0.1:port or [::1]:port", address)
	}
	other := "::1"
	if asked.Addr().Is6() {
		other = "127.0.0.1"
	}
	for try := 1; ; try++ {
		first, err := net.Listen("tcp", address)
		if err != nil {
			return nil, err
		}
		port := first.Addr().(*net.TCPAddr).Port
		second, err := net.Listen("tcp", net.JoinHostPort(other, strconv.Itoa(port)))
		switch {
		case err == nil:
			return []net.Listener{first, second}, nil
		case errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EPROTONOSUPPORT):
			return []net.Listener{first}, nil // this machine does not have the other address
		}
		first.Close()
		if asked.Port() != 0 || try == listenTries {
			return nil, err
		}
	}
}
