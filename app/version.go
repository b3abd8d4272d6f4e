package app

import (
	"runtime"
	"runtime/debug"
)

// Version is the release, set by the linker; if empty, the VCS revision is used.
var Version = ""

// ClientVersion returns the answer of web3_clientVersion: name, version, platform and
// compiler.
func ClientVersion() string {
	return "Ashlar/" + version() + "/" + runtime.GOOS + "-" + runtime.GOARCH + "/" + runtime.Version()
}

func version() string {
	if Version != "" {
		return Version
	}
	if revision := revision(); len(revision) >= 12 {
		return "dev-" + revision[:12]
	}
	return "dev"
}

// commit returns the first four bytes of the built revision in hexadecimal, or zeros if it
// is unknown.
func commit() string {
	if revision := revision(); len(revision) >= 8 {
		return "0x" + revision[:8]
	}
	return "0x00000000"
}

// revision returns the built VCS revision, or "" if it is unknown.
func revision() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}
