package main

import (
	"os"
	"testing"
)

// What scripts rely on: 0 done, 1 failed, 2 wrong usage.
func TestExitCodes(t *testing.T) {
	empty := t.TempDir()
	for _, test := range []struct {
		name string
		args []string
		want int
	}{
		{"help", []string{"--help"}, exitDone},
		{"version", []string{"--version"}, exitDone},
		{"version as a command", []string{"version"}, exitDone},
		{"no command", nil, exitUsage},
		{"unknown command", []string{"mine"}, exitUsage},
		{"unknown flag", []string{"serve", "--port", "1"}, exitUsage},
		{"missing flag", []string{"serve"}, exitUsage},
		{"group without command", []string{"key"}, exitUsage},
		{"missing file", []string{"import", "--data", empty, "--network", "a"}, exitUsage},
		{"nothing to serve", []string{"serve", "--data", empty}, exitFailed},
		{"no such file", []string{"import", "--data", empty, "--network", "a", "--genesis", "sepolia", "nowhere.rlp"}, exitFailed},
		{"no such genesis", []string{"import", "--data", empty, "--network", "b", "--genesis", "nowhere.json", "nowhere.rlp"}, exitFailed},
		{"bad name", []string{"import", "--data", empty, "--network", "../b", "--genesis", "sepolia", "nowhere.rlp"}, exitFailed},
		{"a key", []string{"key", "create", "--data", empty}, exitDone},
		{"status", []string{"status", "--data", empty}, exitDone},
		{"demo without time between blocks", []string{"demo", "--blocks", "1", "--listen", "127.0.0.1:0", "--interval", "0s"}, exitUsage},
		{"demo back in time", []string{"demo", "--blocks", "1", "--listen", "127.0.0.1:0", "--interval", "-1s"}, exitUsage},
		{"verify without a network", []string{"verify", "--data", empty}, exitUsage},
		{"nothing to verify", []string{"verify", "--data", empty, "--network", "a"}, exitFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := os.Args
			defer func() { os.Args = args }()
			os.Args = append([]string{"ashlar"}, test.args...)
			if got := run(t.Context()); got != test.want {
				t.Errorf("exit code %d, expected %d", got, test.want)
			}
		})
	}
}
