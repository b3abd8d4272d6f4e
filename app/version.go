package app

import (
	"runtime"
	"runtime/debug"
)

// Version is the release, set by the linker; else the revision that was built.
var Version = ""

// ClientVersion is what web3_clientVersion answers: name, version, platform and compiler.
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

// commit is the first four bytes of the revision that was built, in hexadecimal;
// zeros where that is not known.
func commit() string {
	if revision := revision(); len(revision) >= 8 {
		return "0x" + revision[:8]
	}
	return "0x00000000"
}

// revision is the one that was built, empty where that is not known.
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
