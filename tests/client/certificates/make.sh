#!/bin/sh
# The certificates of the TLS tests: an authority, what it signed for a server and a client, and one it did not sign.
# They are for nobody else and are valid for a hundred years. They have what RFC 5280 wants, which Python checks from
# 3.13 on. Run in this folder; needs openssl.
set -eu
days=36500
openssl req -x509 -newkey rsa:2048 -nodes -days $days -subj "/CN=pocketmq test authority" \
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout ca.key -out ca.pem
echo "subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
keyUsage=critical,digitalSignature,keyEncipherment
subjectAltName=IP:127.0.0.1" > signed.ext
for name in server client; do
    openssl req -newkey rsa:2048 -nodes -subj "/CN=pocketmq test $name" -keyout rsa.key -out $name.csr
    openssl pkcs8 -topk8 -nocrypt -in rsa.key -out $name.key
    openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days $days -extfile signed.ext -out $name.pem
done
openssl pkcs8 -topk8 -in client.key -passout pass:hush -out client-locked.key
openssl req -x509 -newkey rsa:2048 -nodes -days $days -subj "/CN=stranger" -keyout stranger.key -out stranger.pem
rm -f rsa.key server.csr client.csr ca.key ca.srl signed.ext
