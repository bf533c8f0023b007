package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version names the build: the module's version where the toolchain knows one, the commit else.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Sprintf("riprap, version unknown, %s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	}
	return describe(info)
}

func describe(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	name := "riprap " + cmp.Or(info.Main.Version, "(devel)")
	if revision := settings["vcs.revision"]; info.Main.Version == "(devel)" && revision != "" {
		name += " " + revision[:min(12, len(revision))]
	}
	if settings["vcs.modified"] == "true" {
		name += ", modified"
	}
	return fmt.Sprintf("%s, %s %s/%s", name, info.GoVersion,
		cmp.Or(settings["GOOS"], runtime.GOOS), cmp.Or(settings["GOARCH"], runtime.GOARCH))
}
