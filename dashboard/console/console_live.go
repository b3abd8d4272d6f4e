package console

import (
	"slices"

	"ashlar/dashboard/site"
)

// livePage is the data of the template console-live.
type livePage struct {
	Choice  *site.Form // of the network and the method
	Form    *site.Form // of the key and the request
	Network string
	Socket  string // path of the network's WebSocket, up to the key
}

// showLive shows the page that subscribes over a WebSocket. The browser opens it with a key that
// the visitor types, because a session has none.
func showLive(v *site.Visit) error {
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	query := v.R.URL.Query()
	byNetwork := &site.Field{Name: "network", Label: "Network", Kind: site.KindSelect, Value: query.Get("network")}
	byMethod := &site.Field{Name: "method", Label: "Method", Kind: site.KindSelect, Value: query.Get("method")}
	var chosen *site.Network
	for _, n := range networks {
		if !slices.ContainsFunc(n.Methods, subscribes) {
			continue
		}
		byNetwork.Choices = append(byNetwork.Choices, site.Choice{Value: n.Name, Label: n.Name})
		if chosen == nil || n.Name == byNetwork.Value {
			chosen = &n
		}
	}
	if chosen == nil {
		return v.Show(200, "console-live", "Live subscriptions", livePage{})
	}
	byNetwork.Settle("")
	for _, m := range chosen.Methods {
		if subscribes(m) {
			byMethod.Choices = append(byMethod.Choices, site.Choice{Value: m.Name, Label: m.Name})
		}
	}
	byMethod.Settle(preferredSubscription)
	p := livePage{Choice: site.NewForm(byNetwork, byMethod), Network: chosen.Name, Socket: "/" + chosen.Name + "/ws/v3/"}
	p.Form = site.NewForm(
		&site.Field{Name: "live-key", Label: "Key", Kind: site.KindSecret, Complete: "off", Hint: "One of your keys, as it was shown when you created it. It is not sent anywhere but into the WebSocket’s address."},
		&site.Field{Name: "live-request", Label: "Request", Kind: site.KindText, Rows: 8, Value: v.ExampleRequest(chosen.Method(byMethod.Value))},
	)
	return v.Show(200, "console-live", "Live subscriptions", p)
}

// preferredSubscription is selected first on networks that have it.
const preferredSubscription = "eth_subscribe"

// subscribes reports whether a method begins to send messages: it needs a connection, and no
// value from another method.
func subscribes(m site.Method) bool {
	return m.Stream && (len(m.Params) == 0 || m.Params[0].From == "")
}
