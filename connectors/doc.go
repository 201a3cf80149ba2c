// Package connectors holds the connector files that come with the program. They
// are data: rules loads and checks them, docs/connectors.md describes the format.
package connectors
