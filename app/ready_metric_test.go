package app

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ashlar/family"
)

// unreadable is a network whose blocks cannot be read.
type unreadable struct{ family.Network }

func (unreadable) Status(context.Context) (family.Status, error) {
	return family.Status{}, errors.New("no node answers")
}

// addUnreadable gives a service that runs a network "broken" whose status cannot be read, until the
// function that it returns is called.
func addUnreadable(s *Service) (remove func()) {
	<-s.begun // it would run the network too
	sound := s.Networks()
	s.setNetworks(slices.Insert(slices.Clone(sound), 0, &Network{
		Name: "broken", Network: unreadable{}, family: sound[0].family, methods: sound[0].methods,
	}))
	return func() { s.setNetworks(sound) }
}

// TestReadyMetric: while /readyz says 503, a network has the metric ashlar_ready with 0, which the
// alert AshlarNotReady looks at.
func TestReadyMetric(t *testing.T) {
	s, _ := served(t, nil)
	operator := "http://" + s.operator.listener.Addr().String()
	check := func(what string, status int, metric string) {
		t.Helper()
		if got, body := get(t, operator+"/readyz"); got != status {
			t.Errorf("%s: /readyz says %d %s, expected %d", what, got, body, status)
		}
		if _, metrics := get(t, operator+"/metrics"); !strings.Contains(metrics, metric+"\n") {
			t.Errorf("%s: not in the metrics: %s", what, metric)
		}
	}
	check("sound", 200, `ashlar_ready{network="demo"} 1`)
	why := errors.New("no node answers")
	s.people.unread.Store(&why)
	check("changes of keys are not read", 503, `ashlar_ready{network="demo"} 0`)
	s.people.unread.Store(nil)
	defer addUnreadable(s)()
	check("a network cannot be read", 503, `ashlar_ready{network="broken"} 0`)
}

// TestDashboardOffersAllNetworks: the choices of the dashboard for Grafana have each network that is not ready, and each
// server, whatever its networks are. Otherwise "All" would leave out those that are in trouble.
func TestDashboardOffersAllNetworks(t *testing.T) {
	s, _ := served(t, nil)
	defer addUnreadable(s)()
	_, metrics := get(t, "http://"+s.operator.listener.Addr().String()+"/metrics")
	for label, series := range map[string]string{"network": `{network="broken"} `, "instance": " "} {
		names := regexp.MustCompile(`label_values\((\w+), `+label+`\)`).FindAllStringSubmatch(strings.Join(dashboardQueries(t), "\n"), -1)
		if len(names) != 1 {
			t.Fatalf("choices of %s: %q, expected one", label, names)
		}
		if !strings.Contains(metrics, "\n"+names[0][1]+series) {
			t.Errorf("choices of %s come from %s, of which the server has no %q", label, names[0][1], names[0][1]+series)
		}
	}
}

// A network whose status cannot be read is logged once, and again if it has been out of service since.
func TestUnreadableNetworkIsLoggedOnce(t *testing.T) {
	s, _ := served(t, nil)
	out := captureLog(t)
	scrape := func(want int) {
		t.Helper()
		get(t, "http://"+s.operator.listener.Addr().String()+"/metrics")
		if got := strings.Count(out.String(), "a network's metrics are left out"); got != want {
			t.Errorf("%d lines in the log, expected %d:\n%s", got, want, out.String())
		}
	}
	remove := addUnreadable(s)
	scrape(1)
	scrape(1)
	remove()
	scrape(1)
	defer addUnreadable(s)()
	scrape(2)
}
