#!/bin/sh
# Runs a command of Mediabucket as the user of the service, with the settings of the service: /usr/local/bin/mediabucket.
# The PATH of cron does not contain runuser.
PATH=$PATH:/usr/sbin:/sbin
exec runuser -u mediabucket -- env HOME=/var/lib/mediabucket XDG_CACHE_HOME=/var/cache PATH=/opt/mediabucket/node_modules/.bin:/usr/local/bin:/usr/bin:/bin mediabucket --env-file /etc/mediabucket.env "$@"
