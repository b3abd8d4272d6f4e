package app

import "ashlar/family"

// collectSource collects the state of a network's upstream nodes or consensus client.
func (c *serviceCollector) collectSource(network string, status family.Status, to scrape) {
	g, source := &c.gauges, status.Source
	if driver := status.Consensus; driver != nil {
		to.gauge(g.behind, float64(driver.Behind), network)
		to.gauge(g.heard, float64(driver.Payload), network, "payload")
		to.gauge(g.heard, float64(driver.Forkchoice), network, "forkchoice")
		c.collectConsensus(network, driver.Answers, to)
	}
	if status.LightClient != nil {
		c.collectLightClient(network, status.LightClient, to)
	}
	if source != nil || status.Consensus != nil {
		c.collectFollowing(network, status, to)
	}
	if source == nil {
		return
	}
	if status.Consensus == nil {
		to.gauge(g.behind, float64(source.Behind), network)
	}
	to.gauge(g.reached, truth(source.Reached), network)
	if agreement := source.Agreement; agreement != nil {
		to.gauge(g.agreeing, float64(agreement.Nodes), network)
		to.gauge(g.quorum, float64(agreement.Quorum), network)
	}
	for _, u := range source.Upstreams {
		if source.Agreement != nil {
			to.gauge(g.differs, truth(u.Differs != ""), network, u.Name)
		}
		to.gauge(g.upstreamUsed, truth(u.Used), network, u.Name)
		to.gauge(g.upstreamAside, float64(u.Aside), network, u.Name)
		to.counter(g.upstreamFaults, u.Failures, network, u.Name, "failed")
		to.counter(g.upstreamFaults, u.Invalid, network, u.Name, "invalid")
		to.counter(g.upstreamFaults, u.TooDeep, network, u.Name, "too_deep")
	}
}

// collectConsensus collects what a consensus client was answered. The answers are nil if a light client names the head.
func (c *serviceCollector) collectConsensus(network string, answers *family.ConsensusAnswers, to scrape) {
	if answers == nil {
		return
	}
	g := &c.gauges
	for status, n := range answers.Payloads {
		to.counter(g.judged, n, network, "payload", status)
	}
	for status, n := range answers.Forkchoices {
		to.counter(g.judged, n, network, "forkchoice", status)
	}
	for reason, n := range answers.Refused {
		to.counter(g.consensusRefused, n, network, reason)
	}
	to.gauge(g.consensusHeld, float64(answers.Held), network)
}

// collectFollowing collects whether a network follows, and how fast it catches up.
func (c *serviceCollector) collectFollowing(network string, status family.Status, to scrape) {
	var since int64
	if status.Stopped != nil {
		since = status.Stopped.Since
	}
	var pace family.CatchUp
	if status.CatchUp != nil {
		pace = *status.CatchUp
	}
	to.gauge(c.gauges.stopped, float64(since), network)
	to.gauge(c.gauges.rate, pace.Rate, network)
	to.gauge(c.gauges.remaining, float64(pace.Remaining), network)
}
