package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// output runs a command and returns what it prints.
func output(command string, args ...string) (string, error) {
	out, err := exec.Command(command, args...).Output()
	return strings.TrimSpace(string(out)), err
}

func curlVersions() (string, error) {
	out, err := output("curl", "--version")
	version, _, _ := strings.Cut(out, " (")
	return version, err
}

func pythonVersions() (string, error) {
	return output(python, "-c", "import platform, requests, urllib3\n"+
		"print(f'requests {requests.__version__}, urllib3 {urllib3.__version__}, Python {platform.python_version()}')")
}

// nodeCommand is the Node that scripts/audits installed, or the one in the PATH where there is no package of it.
func nodeCommand() string {
	installed := nodeDir + "/node_modules/.bin/node"
	if _, err := os.Stat(installed); err != nil {
		return "node"
	}
	return installed
}

// nodeVersions returns the versions of npm packages and of Node.
func nodeVersions(packages ...string) (string, error) {
	var versions []string
	for _, name := range packages {
		data, err := os.ReadFile(filepath.Join(nodeDir, "node_modules", name, "package.json"))
		if err != nil {
			return "", err
		}
		var manifest struct{ Version string }
		if err := json.Unmarshal(data, &manifest); err != nil {
			return "", err
		}
		versions = append(versions, name+" "+manifest.Version)
	}
	node, err := output(nodeCommand(), "-p", "`Node ${process.versions.node}, undici ${process.versions.undici}`")
	return strings.Join(append(versions, node), ", "), err
}

// goVersions returns the versions of modules and of Go, as they are in the client program.
func goVersions(modules ...string) (string, error) {
	info, err := buildinfo.ReadFile(goFile)
	if err != nil {
		return "", err
	}
	var versions []string
	for _, dep := range info.Deps {
		for _, module := range modules {
			if dep.Path == module {
				versions = append(versions, filepath.Base(module)+" "+dep.Version)
			}
		}
	}
	if len(versions) != len(modules) {
		return "", fmt.Errorf("%s has no module of %v", goFile, modules)
	}
	return strings.Join(append(versions, "Go "+strings.TrimPrefix(info.GoVersion, "go")), ", "), nil
}

func riphttpVersions() (string, error) {
	golang, err := goVersions()
	if err != nil {
		return "", err
	}
	commit, err := output("git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := output("git", "status", "--porcelain", "--", ".", ":(exclude)"+pageFile)
	if changed != "" {
		commit += " with changes"
	}
	return "riphttp of commit " + commit + ", " + golang, err
}

// machine says where the audits ran.
func machine() string {
	system := cmp.Or(debian(), runtime.GOOS)
	return fmt.Sprintf("%s, %s, %d cores", system, runtime.GOARCH, runtime.NumCPU())
}

// debian returns the name and version of a Linux distribution, empty if there is none.
func debian() string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"`)
		}
	}
	return ""
}
