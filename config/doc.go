// Package config turns config.yaml, KEEP_* environment variables and command line flags into one checked [Config].
//
// Sources are merged in the order defaults < file < environment < flags. The file is decoded strictly before it is
// merged. An unknown key is a problem with its line, its column and the nearest known key. A key of a later version is
// refused by name. Sizes and durations are read here, exactly. A number without a unit is refused where a unit is
// needed.
//
// Failure behaviour: [Load] returns either a Config that satisfies every rule documented on its fields or an [*Error].
// The error lists all problems of all sources at once. There is no partly valid Config, and no value is silently
// replaced or clamped. A file that cannot be read is an error, not an empty file.
//
// # Secrets
//
// Credentials are kept as a [Secret]: a template with references ${env:NAME} and ${file:PATH}. They are resolved only
// by an explicit call, at use. A Secret prints as <secret> in every format, and problems never quote it.
//
// # Caveats
//
// An environment variable that is set to "" counts as unset. KEEP_ADMIN_TOKEN_FILE belongs to the command line as a
// client, so the key admin.token_file has no environment variable. As a list of maps, connectors.settings has none
// either. Load checks what can be judged from the text alone. Whether a port is free, a certificate parses or a folder
// is writable is found out at use.
package config
