// Package config turns config.yaml, KEEP_* environment variables and command
// line flags into one checked [Config].
//
// Sources are merged in the order defaults < file < environment < flags. The
// file is decoded strictly before it is merged: an unknown key is a problem
// with its line, its column and the nearest known key, and a key of a later
// version is refused by name. Sizes and durations are read here, exactly; a
// number without a unit is refused where a unit is needed.
//
// Failure behaviour: [Load] returns either a Config that satisfies every rule
// documented on its fields or an [*Error] that lists all problems of all
// sources at once. There is no partly valid Config, no value is silently
// replaced or clamped, and a file that cannot be read is an error, not an
// empty file.
//
// # Secrets
//
// Credentials are kept as a [Secret]: a template whose ${env:NAME} and
// ${file:PATH} references are resolved only by an explicit call, at use. A
// Secret prints as <secret> in every format, and problems never quote it.
//
// # Caveats
//
//   - An environment variable that is set to the empty string counts as unset.
//   - KEEP_ADMIN_TOKEN_FILE belongs to the command line as a client, so the
//     key admin.token_file has no environment variable; connectors.settings
//     has none either, because it is a list of maps.
//   - Load checks what can be judged from the text alone. Whether a port is
//     free, a certificate parses or a folder is writable is found out by the
//     package that uses it.
package config
