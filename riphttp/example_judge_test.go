package riphttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

func response(code int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func ExampleJudge() {
	fmt.Println(riphttp.Judge(response(200, "")))
	fmt.Println(riphttp.Judge(response(404, "")))
	fmt.Println(riphttp.Judge(response(503, "", "Retry-After", "5")))
	// Output:
	// <nil>
	// <nil>
	// 503 Service Unavailable
}

// A service of our own answers 200 with an error inside, and says by a machine code whether it is worth a retry.
func ExamplePeek() {
	judge := func(resp *http.Response) error {
		body := string(riphttp.Peek(resp, 1024))
		switch {
		case strings.Contains(body, `"code":"busy"`):
			return errors.New("the service is busy")
		case strings.Contains(body, `"code":"refused"`):
			return riprap.Permanent(errors.New("the service refuses"))
		}
		return riphttp.Judge(resp)
	}
	resp := response(200, `{"code":"busy","queue":17}`)
	fmt.Println(judge(resp))
	rest, err := io.ReadAll(resp.Body)
	fmt.Println(string(rest), err)
	// Output:
	// the service is busy
	// {"code":"busy","queue":17} <nil>
}

func ExampleJudgeModels() {
	err := riphttp.JudgeModels(response(429, "", "retry-after-ms", "1250"))
	fmt.Println(err, errors.Is(err, riphttp.ErrNotProcessed))

	err = riphttp.JudgeModels(response(429, `{"error":{"code":"insufficient_quota"}}`))
	fmt.Println(err, errors.Is(err, riphttp.ErrNotProcessed))
	// Output:
	// request not processed: 429 Too Many Requests true
	// 429 Too Many Requests false
}

func ExampleJudgeGitHub() {
	fmt.Println(riphttp.JudgeGitHub(response(403, `{"message":"Must have admin rights"}`)))
	fmt.Println(riphttp.JudgeGitHub(response(403, `{"message":"You have exceeded a secondary rate limit"}`)))
	// Output:
	// <nil>
	// request not processed: 403 Forbidden
}

func ExampleJudgeStripe() {
	err := riphttp.JudgeStripe(response(409, "", "Stripe-Should-Retry", "true"))
	status, _ := errors.AsType[*riphttp.StatusError](err)
	fmt.Println(status.Code, err)
	// Output: 409 409 Conflict
}
