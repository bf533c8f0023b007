module github.com/riprap-go/riprap/cmd/riprap

go 1.26.0

require (
	github.com/riprap-go/riprap v0.0.0
	github.com/spf13/pflag v1.1.0
	go.yaml.in/yaml/v4 v4.0.0
	golang.org/x/term v0.48.0
)

require golang.org/x/sys v0.50.0 // indirect

replace github.com/riprap-go/riprap => ../..
