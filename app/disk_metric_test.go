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
		got := storeMetric(t, c, kv.Stats{FreeBytes: test.free}, "ashlar_store_free_bytes")
		if !maps.Equal(got, test.want) {
			t.Errorf("%s: the metric is %v, expected %v", test.name, got, test.want)
		}
	}
}

// TestKeptRowsMetric: a reader that cannot keep rows on disk says so, and one that need not says nothing.
func TestKeptRowsMetric(t *testing.T) {
	c := newServiceCollector(nil)
	for _, test := range []struct {
		keeps *bool
		want  map[string]float64
	}{
		{new(true), map[string]float64{"a": 1}},
		{new(false), map[string]float64{"a": 0}},
		{nil, map[string]float64{}},
	} {
		if got := storeMetric(t, c, kv.Stats{KeepsRows: test.keeps}, "ashlar_store_keeps_rows"); !maps.Equal(got, test.want) {
			t.Errorf("the metric is %v, expected %v", got, test.want)
		}
	}
}

// storeMetric returns the values of a metric of a store, by network.
func storeMetric(t *testing.T, c *serviceCollector, stats kv.Stats, name string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(storeCollector{c, stats})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return got
}

// storeCollector collects what the store of the network "a" uses.
type storeCollector struct {
	collector *serviceCollector
	stats     kv.Stats
}

func (s storeCollector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, out) }

func (s storeCollector) Collect(out chan<- prometheus.Metric) {
	s.collector.collectStore("a", s.stats, out)
}
