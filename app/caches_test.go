package app

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ashlar/app/config"
	"ashlar/family"
)

// TestCachesAreDocumented: the caches of an EVM network take what the table of docs/configuration.md says, and the
// sentence below it.
func TestCachesAreDocumented(t *testing.T) {
	_, text, _ := strings.Cut(document(t, "configuration.md"), "\n### Memory for caches\n")
	text, _, _ = strings.Cut(text, "\n### ")
	sum := 0
	for _, row := range regexp.MustCompile(`(?m)^\| .* \| (\d+) MiB \|$`).FindAllStringSubmatch(text, -1) {
		size, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		sum += size << 20
	}
	c := config.Default()
	all := Families().Default().Entries().(family.Cacher).CacheBytes()
	if state := 32 << 20; all != int64(sum+state) {
		t.Errorf("the caches of a network take %d bytes, expected %d of the table and %d of state_cache", all, sum, state)
	}
	if says := fmt.Sprintf("these are %d MiB for one network", (all+int64(c.Cache))>>20); !strings.Contains(text, says) {
		t.Errorf("docs/configuration.md does not say that %s", says)
	}
}

// TestCacheBytes: the caches of all networks count, and that of the stores once.
func TestCacheBytes(t *testing.T) {
	var one int64
	for _, more := range []string{"", "second"} {
		s, _ := served(t, func(c *config.Config) {
			c.Cache = 5 << 20
			if more != "" {
				makeStored(t, c.Data, "evm", more)
			}
			makeStored(t, c.Data, "starknet", "third")
		})
		stores, networks := s.CacheBytes()
		if stores != 5<<20 || networks == 0 || more != "" && networks != 2*one {
			t.Errorf("%q: %d bytes for stores and %d for networks, after %d", more, stores, networks, one)
		}
		one = networks
	}
}
