package app

import (
	"runtime"
	"runtime/debug"
)

// Set by the linker in releases (deploy/build.sh).
var (
	Version = "" // the release; empty for other builds
	Commit  = "" // the revision that was built; empty: what the Go command recorded
)

// ClientVersion returns the answer of web3_clientVersion: name, version, platform and
// compiler.
func ClientVersion() string {
	return "Ashlar/" + version() + "/" + runtime.GOOS + "-" + runtime.GOARCH + "/" + runtime.Version()
}

// Build says what was built, and how.
type Build struct {
	Client   string `json:"client"`             // as web3_clientVersion answers
	Version  string `json:"version"`            // the release, or dev
	Commit   string `json:"commit,omitempty"`   // empty if it is not known
	Modified bool   `json:"modified,omitempty"` // the sources differ from the commit
	Time     string `json:"time,omitempty"`     // of the commit; empty if it is not known
	Go       string `json:"go"`
	Platform string `json:"platform"`
	C        bool   `json:"c"` // with libsecp256k1, which is faster than Go's code
}

// BuildInfo returns how this program was built.
func BuildInfo() Build {
	b := Build{
		Client: ClientVersion(), Version: version(), Commit: revision(),
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, C: setting("CGO_ENABLED") == "1",
	}
	if Commit == "" {
		b.Modified, b.Time = setting("vcs.modified") == "true", setting("vcs.time")
	}
	return b
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
	if Commit != "" {
		return Commit
	}
	return setting("vcs.revision")
}

// setting returns a setting of the build, or "" if it is unknown.
func setting(key string) string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
