#!/bin/sh
# /usr/local/bin/mediabucket for a clone in /opt/mediabucket: runs its program with its Node.js.
PATH=/opt/mediabucket/node_modules/.bin:$PATH exec mediabucket "$@"
