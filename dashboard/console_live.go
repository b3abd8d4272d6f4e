package dashboard

import "slices"

// livePage is the data of the template console-live.
type livePage struct {
	Choice  *form // of the network and the method
	Form    *form // of the key and the request
	Network string
	Socket  string // path of the network's WebSocket, up to the key
}

// live shows the page that subscribes over a WebSocket. The browser opens it with a key that
// the visitor types, because a session has none.
func (v *visit) live() error {
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	query := v.r.URL.Query()
	byNetwork := &field{Name: "network", Label: "Network", Kind: kindSelect, Value: query.Get("network")}
	byMethod := &field{Name: "method", Label: "Method", Kind: kindSelect, Value: query.Get("method")}
	var chosen *Network
	for _, n := range networks {
		if !slices.ContainsFunc(n.Methods, subscribes) {
			continue
		}
		byNetwork.Choices = append(byNetwork.Choices, choice{n.Name, n.Name})
		if chosen == nil || n.Name == byNetwork.Value {
			chosen = &n
		}
	}
	if chosen == nil {
		return v.show(200, "console-live", "Live subscriptions", livePage{})
	}
	byNetwork.settle("")
	for _, m := range chosen.Methods {
		if subscribes(m) {
			byMethod.Choices = append(byMethod.Choices, choice{m.Name, m.Name})
		}
	}
	byMethod.settle("")
	p := livePage{Choice: newForm(byNetwork, byMethod), Network: chosen.Name, Socket: "/" + chosen.Name + "/ws/v3/"}
	p.Form = newForm(
		&field{Name: "live-key", Label: "Key", Kind: kindSecret, Complete: "off", Hint: "One of your keys, as it was shown when you created it. It is not sent anywhere but into the WebSocket’s address."},
		&field{Name: "live-request", Label: "Request", Kind: kindText, Rows: 8, Value: v.exampleRequest(chosen.method(byMethod.Value))},
	)
	return v.show(200, "console-live", "Live subscriptions", p)
}

// subscribes reports whether a method begins to send messages: it needs a connection, and no
// value from another method.
func subscribes(m Method) bool {
	return m.Stream && (len(m.Params) == 0 || m.Params[0].From == "")
}
