package app

import (
	"fmt"
	"net/http"

	"ashlar/account"
	"ashlar/app/config"
	"ashlar/gateway"
	"ashlar/jsonrpc"
)

// CheckConfig returns what is wrong with ashlar.yaml, as far as it can be checked without
// opening the data directory: its entries, its files, and their combination.
func CheckConfig(path string) error {
	c, err := config.Check(path, Families())
	if err != nil {
		return err
	}
	s := &Service{config: c, metrics: newMetrics(), people: people{keys: new(account.Keyring)}, dashboard: http.NotFoundHandler()}
	for name := range c.Networks {
		s.networks = append(s.networks, &Network{Name: name, methods: new(jsonrpc.Methods)})
	}
	g, err := s.gatewayConfig(c)
	if err == nil {
		_, err = gateway.New(g)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
