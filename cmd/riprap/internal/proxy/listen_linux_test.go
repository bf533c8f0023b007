package proxy

import (
	"strings"
	"syscall"
	"testing"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

func TestAListenerThatBreaksIsToldOf(t *testing.T) {
	r := launch(t, configure(t, manifest.Proxy{Service: "a", To: saying(t, "ok")}))
	raw, err := r.server("a").listener.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { err = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	if err != nil {
		t.Fatal(err)
	}
	if err := finished(t, "the error of the listener", r.broken); !strings.Contains(err.Error(), "no more connections on 127.0.0.1:0: ") {
		t.Errorf("got %v, want that there are no more connections on 127.0.0.1:0", err)
	}
}
