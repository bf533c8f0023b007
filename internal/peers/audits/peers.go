package main

import (
	"slices"
	"strings"
)

// A peer is a client that is audited.
type peer struct {
	name           string // what CLIENTS= calls it
	title          string // what the page calls it
	about          string // what a reader has to know to read its results fairly
	versions       func() (string, error)
	configurations []configuration
}

// A configuration is a way to set a peer up.
type configuration struct {
	name    string // default or docs
	set     string // what is set, in the peer's own words
	source  string // the documentation that sets it
	command []string
	post    string // shell lines, for a command that takes no method
	keyed   string
	flags   []string // of riprap audit
}

// The configurations of every peer. "default" is what one gets who sets nothing about retries. "docs" is what a reader gets who
// copies the figures from the place where the documentation shows how to retry, and the timeout that the same page or guide
// advises. Where such an example also narrows what is retried, only to show that one can, the library's own choice stays.
const (
	defaults = "default"
	docs     = "docs"
)

const (
	python     = "/usr/bin/python3"
	pythonFile = "internal/peers/clients/python/client.py"
	goFile     = "dist/audits/goclient"
	nodeDir    = "dist/audits/node"
	nodeFile   = nodeDir + "/client.js"
)

var peers = []peer{
	{
		name:     "curl",
		title:    "curl",
		about:    "A command: one process makes one call, so what many calls add up to is not asked of it. It does not follow redirects unless told to.",
		versions: curlVersions,
		configurations: []configuration{
			curl(defaults, "no option about retries", "[curl's manual](https://curl.se/docs/manpage.html#--retry): retries are off unless asked for"),
			curl(docs, "`--retry 5 --retry-max-time 120`", "[Everything curl, Retry](https://everything.curl.dev/usingcurl/downloads/retry), \"Tweak your retries\"",
				"--retry", "5", "--retry-max-time", "120"),
		},
	},
	{
		name:     "requests",
		title:    "requests",
		about:    "Requests retries nothing by itself and leaves retries to urllib3's Retry. These are Debian's packages; later versions of urllib3 have options that these lack, such as jitter.",
		versions: pythonVersions,
		configurations: []configuration{
			{
				name:    defaults,
				set:     "`requests.request(method, url)`",
				source:  "[Requests, Advanced Usage](https://requests.readthedocs.io/en/latest/user/advanced/#example-automatic-retries): no retries by default",
				command: withArguments(python, pythonFile, defaults),
			},
			{
				name: docs,
				set:  "`Retry(total=3, backoff_factor=0.1, status_forcelist=[502, 503, 504])`, `timeout=(3.05, 27)`",
				source: "[Requests, Advanced Usage](https://requests.readthedocs.io/en/latest/user/advanced/#example-automatic-retries), \"Example: Automatic Retries\" and \"Timeouts\"; " +
					"the example's `allowed_methods={'POST'}` is left out: it would repeat POST and nothing else",
				command: withArguments(python, pythonFile, docs),
			},
		},
	},
	{
		name:     "fetch",
		title:    "Node fetch",
		about:    "The fetch of the platform promises no retries. It is here as what others build upon. Its own limit for a header, and for a silence in a body, is five minutes, which is more than the audit's patience.",
		versions: func() (string, error) { return nodeVersions() },
		configurations: []configuration{
			node("fetch", defaults, "`fetch(url, {method, headers, body})`", "[Node.js, fetch](https://nodejs.org/api/globals.html#fetch); it has no retries to configure"),
		},
	},
	{
		name:     "got",
		title:    "got",
		about:    "Got retries by default, and not what is no idempotent method. To each wait it adds up to 100 ms at random (`noise`), which is less than the rule about jitter asks for.",
		versions: func() (string, error) { return nodeVersions("got") },
		configurations: []configuration{
			node("got", defaults, "`got(url, {method, headers, body})`", "[got, Retry API](https://github.com/sindresorhus/got/blob/main/documentation/7-retry.md): two retries by default"),
			node("got", docs, "`retry: {limit: 5}`, `timeout: {request: 10000}`",
				"[got, Quick Start Guide](https://github.com/sindresorhus/got/blob/main/documentation/quick-start.md), \"Retries\" and \"Timeouts\"; "+
					"the example's `errorCodes: ['ETIMEDOUT']` is left out: it would not retry a reset"),
		},
	},
	{
		name:     "axios",
		title:    "axios + axios-retry",
		about:    "axios retries nothing by itself; axios-retry is the plugin that is used most.",
		versions: func() (string, error) { return nodeVersions("axios", "axios-retry") },
		configurations: []configuration{
			node("axios", defaults, "`axiosRetry(axios)`", "[axios-retry, Options](https://github.com/softonic/axios-retry#options): the defaults"),
			node("axios", docs, "`axiosRetry(axios, {retryDelay: axiosRetry.exponentialDelay})`", "[axios-retry, Usage](https://github.com/softonic/axios-retry#usage); no timeout is advised there"),
		},
	},
	{
		name:     "net-http",
		title:    "Go net/http",
		about:    "The standard library's client promises no retries, except of what a kept connection that turned out closed never answered. It is here as what others build upon.",
		versions: func() (string, error) { return goVersions() },
		configurations: []configuration{
			golang("net/http", defaults, "`http.DefaultClient.Do(req)`", "[net/http](https://pkg.go.dev/net/http#Transport); it has no retries to configure"),
		},
	},
	{
		name:     "go-retryablehttp",
		title:    "go-retryablehttp",
		about:    "It retries whatever the method is, by design.",
		versions: func() (string, error) { return goVersions("github.com/hashicorp/go-retryablehttp") },
		configurations: []configuration{
			golang("go-retryablehttp", defaults, "`retryablehttp.NewClient()`", "[go-retryablehttp, README](https://github.com/hashicorp/go-retryablehttp#example-use), \"Example Use\""),
			golang("go-retryablehttp", docs, "`RetryMax = 10`, `StandardClient()`",
				"[go-retryablehttp, README](https://github.com/hashicorp/go-retryablehttp#getting-a-stdlib-httpclient-with-retries), \"Getting a stdlib client with retries\"; no timeout is advised there"),
		},
	},
	{
		name:     "failsafe-go",
		title:    "failsafe-go",
		about:    "A toolbox of policies of which the HTTP retry policy is one; its timeout, budget and jitter are there to be added.",
		versions: func() (string, error) { return goVersions("github.com/failsafe-go/failsafe-go") },
		configurations: []configuration{
			golang("failsafe-go", defaults, "`failsafehttp.NewRetryPolicyBuilder().Build()`", "[failsafehttp](https://pkg.go.dev/github.com/failsafe-go/failsafe-go/failsafehttp#NewRetryPolicyBuilder): two retries by default"),
			golang("failsafe-go", docs, "`.WithBackoff(time.Second, 30*time.Second).WithMaxRetries(3)`",
				"[failsafe-go, HTTP Support](https://failsafe-go.dev/http/), \"Retrying HTTP Failures\"; no timeout is advised there"),
		},
	},
	{
		name:     "riphttp",
		title:    "riphttp",
		about:    "The HTTP edge of this project, whose authors wrote the audit too. By default it bounds a silence in an answer's body and not the whole of it, since a stream may live for hours: so it does not give up on a body that drips or never ends. `http.Client.Timeout` bounds that too.",
		versions: riphttpVersions,
		configurations: []configuration{
			golang("riphttp", defaults, "`&riphttp.Transport{}`", "[riphttp](https://pkg.go.dev/github.com/riprap-go/riprap/riphttp#Transport): the zero value"),
			golang("riphttp", docs, "`NewKey`, `http.Client{Timeout: 25 * time.Second}`", "[docs/http.md](http.md), \"What may be sent again\" and \"Time\"; the page advises a bound and no figure: the 25 s are ours, below the audit's patience, and without them it does not keep the rules about bodies"),
		},
	},
}

// arguments are those that every client program takes.
var arguments = []string{"{method}", "{url}", "{body}", "{key}", "{token}", "{calls}"}

func withArguments(command ...string) []string { return slices.Concat(command, arguments) }

func golang(library, name, set, source string) configuration {
	return configuration{name: name, set: set, source: source, command: withArguments(goFile, library, name)}
}

func node(library, name, set, source string) configuration {
	return configuration{name: name, set: set, source: source, command: withArguments(nodeCommand(), nodeFile, library, name)}
}

// curl is told to ignore the .curlrc of whoever runs the audits, and to be silent. The body goes to the standard output: where
// curl 7.88 is told to write it to /dev/null it does not retry, because it cannot truncate that.
func curl(name, set, source string, options ...string) configuration {
	base := slices.Concat([]string{"curl", "-q", "-sS"}, options)
	post := slices.Concat(base, []string{"-H", "'Content-Type: text/plain'", "--data-binary", "'{body}'"})
	keyed := slices.Concat(post, []string{"-H", "'Idempotency-Key: {key}'"})
	return configuration{
		name:    name,
		set:     set,
		source:  source,
		command: slices.Concat(base, []string{"{url}"}),
		post:    strings.Join(append(post, "'{url}'"), " "),
		keyed:   strings.Join(append(keyed, "'{url}'"), " "),
	}
}
