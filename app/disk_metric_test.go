package app

import (
	"maps"
	"testing"

	"ashlar/kv"

	"github.com/prometheus/client_golang/prometheus"
)

// A full disk has 0 bytes free, and a store that does not know its disk has no metric of that: an alert must be
// able to tell them apart.
func TestFreeSpaceMetric(t *testing.T) {
	c := newServiceCollector(nil)
	for _, test := range []struct {
		name string
		free *int64
		want map[string]float64
	}{
		{"full", new(int64), map[string]float64{"a": 0}},
		{"some", new(int64(5)), map[string]float64{"a": 5}},
		{"not known", nil, map[string]float64{}},
	} {
		got := make(map[string]float64)
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			if d == c.gauges.free {
				got[labels[0]] = value
			}
		}
		c.collectStore("a", kv.Stats{FreeBytes: test.free}, gauge, func(*prometheus.Desc, uint64, ...string) {})
		if !maps.Equal(got, test.want) {
			t.Errorf("%s: the metric is %v, expected %v", test.name, got, test.want)
		}
	}
}
