package app

import (
	"ashlar/family"
)

// collectLightClient collects what a light client sees.
func (c *serviceCollector) collectLightClient(network string, light *family.LightClientStatus, to scrape) {
	g := &c.gauges
	to.gauge(g.lightSlot, float64(light.Slot), network, "present")
	to.gauge(g.lightSlot, float64(light.Head), network, "head")
	to.gauge(g.lightSlot, float64(light.Finalized), network, "finalized")
	to.gauge(g.lightPeriods, float64(light.PeriodsBehind), network)
	to.gauge(g.lightFinalized, float64(light.FinalizedTime), network)
	for _, n := range light.Nodes {
		to.gauge(g.beaconUsed, truth(n.Used), network, n.Name)
		to.counter(g.beaconFaults, n.Failures, network, n.Name, "failed")
		to.counter(g.beaconFaults, n.Invalid, network, n.Name, "invalid")
	}
}
