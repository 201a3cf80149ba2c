<?php
[, $method, $url] = $argv;
$c = curl_init($url);
curl_setopt_array($c, [CURLOPT_CUSTOMREQUEST => $method, CURLOPT_HEADER => true, CURLOPT_RETURNTRANSFER => true,
    CURLOPT_SUPPRESS_CONNECT_HEADERS => true, CURLOPT_HTTPHEADER => ["Content-Type: application/json"]]);
if ($ca = getenv("SSL_CERT_FILE")) {
    curl_setopt($c, CURLOPT_CAINFO, $ca);
}
if ($method === "POST") {
    curl_setopt($c, CURLOPT_POSTFIELDS, file_get_contents("php://stdin"));
}
$answer = curl_exec($c);
if ($answer === false) {
    fwrite(STDERR, curl_error($c) . "\n");
    exit(1);
}
echo $answer, "\n";
