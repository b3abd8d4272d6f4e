package network

import (
	"testing"

	"ashlar/internal/familytest"
)

func TestDemoOnFullDisk(t *testing.T) { familytest.DemoOnFullDisk(t, Family{}) }
