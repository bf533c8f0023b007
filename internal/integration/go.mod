module github.com/riprap-go/riprap/internal/integration

go 1.26.0

require github.com/riprap-go/riprap v0.0.0

replace github.com/riprap-go/riprap => ../..
