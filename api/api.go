// Package api is the contract that the owner's programs and the orchestrator
// agree on (API-01 to API-03): one OpenAPI document, from which the server's
// and the client's types are generated.
package api

import _ "embed"

//go:generate go tool -C .. -modfile=tools/go.mod oapi-codegen -config api/server.cfg.yaml api/openapi.yaml
//go:generate go tool -C .. -modfile=tools/go.mod oapi-codegen -config api/client.cfg.yaml api/openapi.yaml

//go:embed openapi.yaml
var document string

// Document is the contract as YAML.
func Document() []byte { return []byte(document) }
