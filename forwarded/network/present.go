package network

import (
	"encoding/json"
	"fmt"
	"strconv"

	"ashlar/family"
	"ashlar/forwarded/api"
)

// Presentation implements [family.Presenter].
func (Family) Presentation() family.Presentation {
	return family.Presentation{
		History:    " that the nodes behind it have",
		Snippets:   snippets,
		Programs:   programs,
		HeadResult: func(head uint64) string { return fmt.Sprintf(`"%#x"`, head) },
	}
}

func snippets(url, password string) []family.Snippet {
	return []family.Snippet{
		{Tool: "curl", Text: family.CurlLine(url, password, "eth_blockNumber")},
		{Tool: "viem", Text: family.Lines(
			`import { createPublicClient, http } from "viem";`,
			``,
			viemTransport(url, password),
			`const client = createPublicClient({ transport });`,
			`console.log(await client.getBlockNumber());`)},
		{Tool: "cast", Text: "cast block-number --rpc-url " + url + family.WithPassword(password, ` --rpc-headers "Authorization: %s"`)},
	}
}

func viemTransport(url, password string) string {
	return `const transport = http("` + url + `"` + family.WithPassword(password, `, { fetchOptions: { headers: { Authorization: "%s" } } }`) + `);`
}

// programs returns programs that call a method with params.
func programs(url, password, method string, params json.RawMessage) []family.Snippet {
	return []family.Snippet{
		{Tool: "viem", Text: family.Lines(
			`import { createPublicClient, http } from "viem";`, ``,
			viemTransport(url, password),
			`const client = createPublicClient({ transport });`,
			`console.log(await client.request({ method: `+strconv.Quote(method)+`, params: `+string(params)+` }));`)},
		{Tool: "Go", Text: family.GoProgram(url, password, method, params)},
	}
}

// Methods implements [family.Presenter].
func (Family) Methods() ([]string, error) {
	methods, err := api.New(nil, api.Config{}).Methods() // the names depend on no chain
	if err != nil {
		return nil, err
	}
	return methods.Names(), nil
}

// Demo implements [family.Presenter]. A forwarded network needs nodes, so there is none.
func (Family) Demo() (family.Demo, error) { return nil, nil }
