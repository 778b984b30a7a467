package isolated

import (
	"net"
	"strconv"
	"testing"
)

// CER-05, SURF-01: the sign-in surface has its port on both addresses that
// localhost can mean, or does not start.
func TestListenLoopback(t *testing.T) {
	probe, err := net.Listen("tcp", "[::1]:0")
	six := err == nil
	if six {
		probe.Close()
	}
	want := map[bool]int{true: 2, false: 1}[six]
	listeners, err := listenLoopback("127.0.0.1:0")
	if err != nil || len(listeners) != want {
		t.Fatalf("%d listeners, %v", len(listeners), err)
	}
	address := listeners[0].Addr().(*net.TCPAddr)
	if !address.IP.Equal(net.IPv4(127, 0, 0, 1)) || address.Port == 0 {
		t.Errorf("the first listener is at %v", address)
	}
	for _, host := range []string{"127.0.0.1", "::1"}[:want] {
		at := net.JoinHostPort(host, strconv.Itoa(address.Port))
		if l, err := net.Listen("tcp", at); err == nil {
			l.Close()
			t.Errorf("another program can listen at %s", at)
		}
	}
	for _, l := range listeners {
		l.Close()
	}
	for _, bad := range []string{"0.0.0.0:0", "[::]:0", "localhost:0", ":0", "127.0.0.1", "192.0.2.1:80", ""} {
		if l, err := listenLoopback(bad); err == nil {
			t.Errorf("%q was accepted", bad)
			for _, l := range l {
				l.Close()
			}
		}
	}
	if !six {
		return // there is no second address that could be taken
	}
	squatter, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(squatter.Addr().(*net.TCPAddr).Port))
	if _, err := listenLoopback(at); err == nil {
		t.Error("it starts beside another program on [::1]")
	}
	free, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatalf("after refusing, the first address is still held: %v", err)
	}
	free.Close()
}
