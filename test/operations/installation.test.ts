import { test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { expectOperatorPages, runOperatorPages } from '../harness/machine.ts'
import { canMount } from '../harness/small-disk.ts'

/**
 * The repository may be in a directory that only its owner can enter, so its entries are mounted one by one. Then as
 * docs/operations/systemd.md continues after the installation of the programs.
 */
const clone = `mkdir $STAGE/repository /opt/mediabucket
mount --bind ${root} $STAGE/repository
for entry in $STAGE/repository/*; do
  place=/opt/mediabucket/$(basename "$entry")
  if [ -d "$entry" ]; then mkdir "$place"; else : > "$place"; fi
  mount --bind "$entry" "$place"
done
cd /opt/mediabucket`

test.skipIf(process.env['CI'] === undefined && !(await canMount()))(
  'O7 the lines of the pages for operators install a clone, back it up, restore it, move it to PostgreSQL and audit it, as a user who is not root',
  { timeout: 300_000 },
  () =>
    runOperatorPages(
      {
        install: [clone, 'sudo install -m 755 docs/operations/mediabucket.sh /usr/local/bin/mediabucket'],
        hasUnit: false,
      },
      expectOperatorPages,
    ),
)
