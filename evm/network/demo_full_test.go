package network

import (
	"testing"

	"ashlar/family"
	"ashlar/internal/familytest"
)

func TestDemoOnFullDisk(t *testing.T) {
	familytest.DemoOnFullDisk(t, Family{}, func(t *testing.T, n family.Network) {
		t.Helper()
		shown, err := Family{}.Demo()
		if err != nil {
			t.Fatal(err)
		}
		made := n.(*network)
		checkContents(t, made, shown.(demoNetwork).by(made.executor.Config()))
	})
}
