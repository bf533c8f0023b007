module github.com/riprap-go/riprap

go 1.26.0
