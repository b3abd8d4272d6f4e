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
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
				return "dev-" + setting.Value[:12]
			}
		}
	}
	return "dev"
}
