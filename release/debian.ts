import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import server from '../packages/server/package.json' with { type: 'json' }
import { readSource, runIn } from './pack.ts'
import { type Architecture, completionFiles, debianNames } from './tree.ts'

/** Who publishes the package. */
const maintainer = process.env['RELEASE_MAINTAINER'] ?? 'Mediabucket <mediabucket@localhost>'

const environment = `# Settings of Mediabucket, one NAME=value a line. \`mediabucket help settings\` lists them.
MEDIABUCKET_DATA=/var/lib/mediabucket
MEDIABUCKET_LOG_FORMAT=json
#MEDIABUCKET_BASE_URL=https://media.example.org
`

/** In a chroot and in a container there is no systemd. */
const scripts: Readonly<Record<string, string>> = {
  postinst: `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  if ! getent passwd mediabucket > /dev/null; then
    adduser --system --group --quiet --home /var/lib/mediabucket --no-create-home mediabucket
  fi
  for directory in /var/lib/mediabucket /var/cache/mediabucket; do
    [ -d $directory ] || install -d -m 700 -o mediabucket -g mediabucket $directory
  done
  chgrp mediabucket /etc/mediabucket/env
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable --quiet mediabucket.service
    systemctl restart mediabucket.service
  fi
  if [ -z "$2" ]; then
    echo "mediabucket: http://127.0.0.1:8080 is the service, and /etc/mediabucket/env has its settings."
    echo "mediabucket: To see the token of the first start: sudo journalctl -u mediabucket | grep mbkt_"
    echo "mediabucket: To create another one: sudo mediabucket token create --bucket default"
  fi
fi
`,
  prerm: `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --quiet --now mediabucket.service
fi
`,
  postrm: `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
if [ "$1" = purge ]; then
  rm -rf /var/cache/mediabucket
  # The files of users stay, unless MEDIABUCKET_PURGE_DATA=yes.
  if [ "$MEDIABUCKET_PURGE_DATA" = yes ]; then rm -rf /var/lib/mediabucket; fi
fi
`,
}

/** Reasons for what lintian would report as errors. */
const overrides = [
  '# Node.js contains its libraries, in the versions that it was tested with.',
  'mediabucket: embedded-library *',
  '# The programs are those of nodejs.org and sharp, unchanged.',
  'mediabucket: unstripped-binary-or-object *',
  '# The package brings its Node.js.',
  'mediabucket: missing-dep-for-interpreter node *',
]

/** Where Debian has what a tree contains. */
const places: Readonly<Record<string, string>> = {
  docs: 'usr/share/doc/mediabucket/docs',
  'README.md': 'usr/share/doc/mediabucket/README.md',
  'CHANGELOG.md': 'usr/share/doc/mediabucket/CHANGELOG.md',
  ...Object.fromEntries(
    ['man/man1/mediabucket.1', ...Object.values(completionFiles)].map((path) => [
      `share/${path}`,
      `usr/share/${path}`,
    ]),
  ),
}

/** Writes the Debian package of a tree (tree.ts) to `file`. Needs dpkg-deb. */
export async function writeDebianPackage(
  tree: string,
  architecture: Architecture,
  file: string,
  { time, version }: { readonly time: string; readonly version: string },
): Promise<void> {
  const directory = await mkdtemp(join(dirname(file), 'debian-'))
  const write = async (path: string, text: string, mode = 0o644) => {
    await mkdir(join(directory, dirname(path)), { recursive: true, mode: 0o755 })
    await writeFile(join(directory, path), text)
    await chmod(join(directory, path), mode)
  }
  await chmod(directory, 0o755)
  await mkdir(join(directory, 'usr/lib'), { recursive: true })
  await runIn(directory)('cp', '-a', '--reflink=auto', tree, join(directory, 'usr/lib/mediabucket'))
  for (const [from, to] of Object.entries(places)) {
    const path = join(directory, 'usr/lib/mediabucket', from)
    if (!existsSync(path)) continue
    await mkdir(join(directory, dirname(to)), { recursive: true, mode: 0o755 })
    await rename(path, join(directory, to))
  }
  await rm(join(directory, 'usr/lib/mediabucket/share'), { recursive: true, force: true })
  await mkdir(join(directory, 'usr/bin'), { mode: 0o755 })
  await symlink('../lib/mediabucket/bin/mediabucket', join(directory, 'usr/bin/mediabucket'))
  await write(
    'lib/systemd/system/mediabucket.service',
    await readSource('docs/operations/mediabucket.service'),
  )
  await write('etc/mediabucket/env', environment, 0o640)
  const copyright = [
    'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/',
    'Comment: The licences of what it contains, such as Node.js and libvips (LGPL-3), are in /usr/lib/mediabucket/licences.',
    '',
    'Files: *',
    'Copyright: the authors of Mediabucket',
    'License: Expat',
    ...(await readSource('LICENSE'))
      .trim()
      .split('\n')
      .map((line) => ` ${line || '.'}`),
  ]
  await write('usr/share/doc/mediabucket/copyright', `${copyright.join('\n')}\n`)
  const date = new Date(Number(time) * 1_000).toUTCString().replace('GMT', '+0000')
  const changes = `mediabucket (${version}) stable; urgency=medium\n\n  * See CHANGELOG.md of the project.\n\n -- ${maintainer}  ${date}\n`
  await write('usr/share/doc/mediabucket/changelog', changes)
  const manual = 'usr/share/man/man1/mediabucket.1'
  const compressed = [manual].filter((path) => existsSync(join(directory, path)))
  await runIn(directory)('gzip', '-9n', 'usr/share/doc/mediabucket/changelog', ...compressed)
  await write('usr/share/lintian/overrides/mediabucket', `${overrides.join('\n')}\n`)
  const size = await installedSize(directory)
  const control = [
    'Package: mediabucket',
    `Version: ${version}`,
    `Architecture: ${debianNames[architecture]}`,
    `Maintainer: ${maintainer}`,
    'Section: net',
    'Priority: optional',
    `Installed-Size: ${size}`,
    'Depends: adduser, libc6 (>= 2.28), libatomic1, libgcc-s1, libstdc++6',
    'Suggests: ffmpeg, poppler-utils, libheif-examples',
    `Description: ${server.description.replace(/\.$/, '').replace(/^A /, '')}`,
    ' Stores files that HTTP clients upload, lists them page by page with an exact',
    ' total, and serves each at a permanent URL. Has a gallery for browsers. The',
    ' package contains the Node.js that it runs on.',
  ]
  await write('DEBIAN/control', `${control.join('\n')}\n`)
  await write('DEBIAN/conffiles', '/etc/mediabucket/env\n')
  for (const [name, text] of Object.entries(scripts)) await write(`DEBIAN/${name}`, text, 0o755)
  await runIn(directory, { SOURCE_DATE_EPOCH: time })(
    ...(['dpkg-deb', '--root-owner-group', '-Zgzip', '-z6', '--build', directory, file] as const),
  )
  await rm(directory, { recursive: true })
}

/** KiB as dpkg-gencontrol counts them: what a file system really allocates differs between builds. */
async function installedSize(directory: string): Promise<number> {
  const entries = ['-mindepth', '1', '-path', './DEBIAN', '-prune', '-o', '-printf', '%y %s\\n']
  const { stdout } = await runIn(directory)('find', '.', ...entries)
  return stdout
    .trim()
    .split('\n')
    .reduce((sum, line) => sum + (line.startsWith('f ') ? Math.ceil(Number(line.slice(2)) / 1024) : 1), 0)
}
