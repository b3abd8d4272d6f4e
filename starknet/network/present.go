package network

import (
	"encoding/json"
	"strconv"

	"ashlar/family"
	"ashlar/starknet/api"
	"ashlar/starknet/archive"
	"ashlar/starknet/query"
)

// Presentation implements [family.Presenter].
func (Family) Presentation() family.Presentation {
	return family.Presentation{
		History:    ", with its receipts and events",
		Snippets:   snippets,
		Programs:   programs,
		HeadResult: func(head uint64) string { return strconv.FormatUint(head, 10) },
	}
}

// programs returns programs that call a method with params.
func programs(url, password, method string, params json.RawMessage) []family.Snippet {
	return []family.Snippet{
		{Tool: "JavaScript", Text: family.Lines(
			`const response = await fetch("`+url+`", {`,
			`  method: "POST",`,
			`  headers: { "Content-Type": "application/json"`+family.WithPassword(password, `, Authorization: "%s"`)+` },`,
			`  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: `+strconv.Quote(method)+`, params: `+string(params)+` }),`,
			`});`,
			`console.log(JSON.stringify(await response.json(), null, 2));`)},
		{Tool: "Go", Text: family.GoProgram(url, password, method, params)},
	}
}

func snippets(url, password string) []family.Snippet {
	return []family.Snippet{
		{Tool: "curl", Text: family.CurlLine(url, password, "starknet_blockNumber")},
		{Tool: "starknet.js", Text: family.Lines(
			`import { RpcProvider } from "starknet";`,
			``,
			`const provider = new RpcProvider({ nodeUrl: "`+url+`"`+family.WithPassword(password, `, headers: { Authorization: "%s" }`)+` });`,
			`console.log(await provider.getBlockNumber());`)},
	}
}

// Methods implements [family.Presenter].
func (Family) Methods() ([]string, error) {
	methods, err := api.New(query.NewChain(new(archive.Archive), nil), api.Usual()).Methods() // the names depend on no chain
	if err != nil {
		return nil, err
	}
	return methods.Names(), nil
}
