//go:build race

package proxies

const raced = true
