module github.com/riprap-go/riprap/internal/integration

go 1.26.0

require github.com/riprap-go/riprap v0.0.0

require (
	golang.org/x/net v0.62.0
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/riprap-go/riprap => ../..
