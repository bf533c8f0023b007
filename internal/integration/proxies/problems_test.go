package proxies

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
)

// kindOf is the name of the problem that a body tells of; "" if it tells of none.
func kindOf(body string) string {
	var p struct{ Type string }
	json.Unmarshal([]byte(body), &p)
	_, name, _ := strings.Cut(path.Base(p.Type), "#")
	return name
}

// readRequest reads a request to its end.
func readRequest(conn net.Conn) (*http.Request, error) {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return r, err
}
