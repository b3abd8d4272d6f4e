package app

import (
	"ashlar/family"

	"github.com/prometheus/client_golang/prometheus"
)

// collectLightClient collects what a light client sees.
func (c *serviceCollector) collectLightClient(network string, light *family.LightClientStatus, gauge func(*prometheus.Desc, float64, ...string), counter func(*prometheus.Desc, uint64, ...string)) {
	g := &c.gauges
	gauge(g.lightSlot, float64(light.Slot), network, "present")
	gauge(g.lightSlot, float64(light.Head), network, "head")
	gauge(g.lightSlot, float64(light.Finalized), network, "finalized")
	gauge(g.lightPeriods, float64(light.PeriodsBehind), network)
	gauge(g.lightFinalized, float64(light.FinalizedTime), network)
	for _, n := range light.Nodes {
		gauge(g.beaconUsed, truth(n.Used), network, n.Name)
		counter(g.beaconFaults, n.Failures, network, n.Name, "failed")
		counter(g.beaconFaults, n.Invalid, network, n.Name, "invalid")
	}
}
