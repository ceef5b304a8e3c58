import { execFile } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeDebianPackage } from '../../release/debian.ts'
import { runIn } from '../../release/pack.ts'
import { read, root } from '../architecture/sources.ts'
import { blocksOf } from '../docs/blocks.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectOperatorPages, runOperatorPages } from '../harness/machine.ts'
import { installMissing } from '../harness/tools.ts'
import { commandInArm64Root, commandInRoot, createArm64Root, createBareRoot } from './bare-root.ts'
import { buildDockerfile, readConfig, useImage } from './container.ts'
import { isServed, startCommand, uploadPicture, useService } from './service.ts'

// npm run test:release: builds everything that is published, and installs, uses, upgrades and removes each as a user would. Takes minutes,
// and needs root on Debian with x64, and Linux 6.7 or newer.

const run = promisify(execFile)
/** `all`, or `built` to test what `npm run release` has built. */
const chosen = process.env['MEDIABUCKET_TEST_RELEASE']
const release = join(root, 'dist/release')

let scratch: Awaited<ReturnType<typeof temporaryDirectory>>
let version = ''
const file = (name: string) => join(release, name)
const build = () => run(process.execPath, ['release/release.ts'], { cwd: root, maxBuffer: 10_000_000 })
const hours = 3_600_000

/** Programs that only these tests need, and their Debian packages. */
const tools = {
  buildah: 'buildah',
  lintian: 'lintian',
  man: 'man-db',
  mmdebstrap: 'mmdebstrap',
  'qemu-aarch64-static': 'qemu-user-static',
}

/** The files of a release that docs/install.md names. */
const namedFiles = (): string[] => [
  ...new Set(read('docs/install.md').match(/\bmediabucket[-_][\w.-]+\.(?:tgz|tar\.gz|deb|oci\.tar)\b/g)),
]

/** The line of docs/install.md that installs the packages of npm. */
const npmLine = (): string =>
  blocksOf('docs/install.md')
    .find(({ reason }) => reason === 'it installs files of a release')
    ?.code.split('\n')[0] ?? ''

/** What only an older release has, below lib/node_modules. */
const removed = ['mediabucket/dist/removed.js', 'removed/package.json']

/** Writes a Debian package of version 0.0.9 to `deb`, of the tree of a release with other contents of some files, and more files. */
async function writeOlderPackage(tree: string, version: string, deb: string): Promise<void> {
  const modules = join(tree, 'lib/node_modules')
  for (const path of globSync('mediabucket/{package.json,dist/**/*.js}', { cwd: modules })) {
    const text = await readFile(join(modules, path), 'utf8')
    await writeFile(join(modules, path), text.replaceAll(version, '0.0.9'))
  }
  for (const path of removed) {
    await mkdir(dirname(join(modules, path)), { recursive: true })
    await writeFile(join(modules, path), '{}')
  }
  await writeDebianPackage(tree, 'x64', deb, { time: '1', version: '0.0.9' })
}

describe.skipIf(chosen === undefined)('what is published', () => {
  beforeAll(async () => {
    installMissing(tools)
    scratch = await temporaryDirectory()
    version = JSON.parse(await readFile(join(root, 'packages/server/package.json'), 'utf8')).version
    if (chosen === 'all') await build()
  }, hours)
  afterAll(() => scratch?.[Symbol.asyncDispose]())

  const directory = async (name: string) => {
    const path = join(scratch.path, name)
    await mkdir(path)
    return path
  }

  test('docs/install.md names files of the release, and SHA256SUMS all of them', async () => {
    const files = (await readdir(release)).filter((name) => name !== 'SHA256SUMS')
    const named = namedFiles()
    expect(named).toHaveLength(6)
    expect(files).toEqual(expect.arrayContaining(named))
    await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: release })
    const sums = (await readFile(file('SHA256SUMS'), 'utf8')).trim().split('\n')
    expect(sums.map((line) => line.slice(66)).sort()).toEqual(files.sort())
  })

  test(
    'the packages of npm run in an empty directory, and globally',
    async () => {
      const served = namedFiles()
        .filter((name) => name.endsWith('.tgz'))
        .map(file)
      expect(served).toHaveLength(2)
      const [project, data] = [await directory('project'), await directory('npm-data')]
      const env = { HOME: scratch.path, PATH: process.env['PATH'] ?? '', MEDIABUCKET_DATA: data }
      // With the settings of this machine's npm.
      await runIn(project)('npm', 'install', '--no-audit', ...served)
      let id = ''
      {
        const { stdout } = await run('npx', ['--no-install', 'mediabucket', '--version'], {
          cwd: project,
          env,
        })
        expect(stdout).toBe(`${version}\n`)
        // What npx runs. npx itself ends at once by SIGTERM (docs/interface.md O9).
        const program = join(project, 'node_modules/.bin/mediabucket')
        await using service = await startCommand([program, 'serve'], env, project)
        id = await useService(service)
      }
      const prefix = await directory('prefix')
      await runIn(project)('npm', 'install', '--global', '--prefix', prefix, '--no-audit', ...served)
      await using service = await startCommand([join(prefix, 'bin/mediabucket'), 'serve'], env)
      expect(await isServed(service, id)).toBe(true)
    },
    hours,
  )

  test(
    'the archive runs in a root directory without Node.js, also as an upgrade beside the data',
    async () => {
      const machine = await directory('archive')
      await run('tar', ['xzf', file(`mediabucket-${version}-linux-x64.tar.gz`), '-C', machine])
      const name = `mediabucket-${version}-linux-x64`
      await createBareRoot(machine, join(machine, name))
      const start = () =>
        startCommand(commandInRoot(machine, [`/${name}/bin/mediabucket`, 'serve']), {
          HOME: '/',
          MEDIABUCKET_DATA: '/data',
        })
      let id = ''
      {
        await using service = await start()
        id = await useService(service)
      }
      await run('rm', ['-r', join(machine, name)])
      await run('tar', ['xzf', file(`${name}.tar.gz`), '-C', machine])
      await using service = await start()
      expect([service.token, await isServed(service, id)]).toEqual(['', true])
    },
    hours,
  )

  test(
    'the archive for arm64 serves on an emulated processor',
    async () => {
      const machine = join(scratch.path, 'arm64')
      await createArm64Root(machine)
      const name = `mediabucket-${version}-linux-arm64`
      await run('tar', ['xzf', file(`${name}.tar.gz`), '-C', machine])
      // A picture takes seconds.
      const settings = { HOME: '/', MEDIABUCKET_DATA: '/data', MEDIABUCKET_VARIANT_TIMEOUT: '1h' }
      const command = commandInArm64Root(machine, [`/${name}/bin/mediabucket`, 'serve'])
      await using service = await startCommand(command, settings)
      const id = await uploadPicture(service, 1)
      expect(await isServed(service, id)).toBe(true)
    },
    hours,
  )

  test(
    'the Debian package upgrades an older one and is purged; files of users stay',
    async () => {
      const machine = join(scratch.path, 'debian')
      const packages = 'adduser,libatomic1,libstdc++6'
      await run('mmdebstrap', [
        '--quiet',
        '--variant=essential',
        `--include=${packages}`,
        'bookworm',
        machine,
      ])
      const inside = (...args: string[]) => run('chroot', [machine, ...args])
      const install = async (deb: string) => {
        await run('cp', [deb, join(machine, 'tmp/mediabucket.deb')])
        await inside('dpkg', '--install', '/tmp/mediabucket.deb')
      }
      const deb = file(`mediabucket_${version}_amd64.deb`)
      const [released, older] = [await directory('released'), await directory('older')]
      for (const path of [released, older]) await run('dpkg-deb', ['--extract', deb, path])
      const olderDeb = join(scratch.path, 'older.deb')
      await writeOlderPackage(join(older, 'usr/lib/mediabucket'), version, olderDeb)
      await install(olderDeb)
      expect((await inside('stat', '-c', '%U %a', '/var/lib/mediabucket')).stdout).toBe('mediabucket 700\n')
      expect((await inside('stat', '-c', '%G %a', '/etc/mediabucket/env')).stdout).toBe('mediabucket 640\n')
      // As systemd starts it.
      const start = async () => {
        const read = (path: string) => readFile(join(machine, path), 'utf8')
        const unit = await read('lib/systemd/system/mediabucket.service')
        const command = /^ExecStart=(.*)/m.exec(unit)?.[1]?.split(' ') ?? []
        const user = '--userspec=mediabucket:mediabucket'
        return await startCommand(commandInRoot(machine, command, user), {
          CACHE_DIRECTORY: '/var/cache/mediabucket',
        })
      }
      const programs = join(machine, 'usr/lib/mediabucket')
      const printedVersion = async () => {
        const [unshare = '', ...args] = commandInRoot(machine, ['/usr/bin/mediabucket', '--version'])
        return (await run(unshare, args)).stdout.trim()
      }
      let [id, token] = ['', '']
      {
        await using service = await start()
        token = service.token
        id = await useService(service)
      }
      expect(await printedVersion()).toBe('0.0.9')
      for (const path of removed)
        expect(existsSync(join(programs, 'lib/node_modules', path)), path).toBe(true)

      await run('sh', ['-c', `echo MEDIABUCKET_LOG_LEVEL=warn >> ${join(machine, 'etc/mediabucket/env')}`])
      await install(deb)
      expect(await printedVersion()).toBe(version)
      // All files are those of the release, and the older one left none.
      await run('diff', ['--recursive', join(released, 'usr/lib/mediabucket'), programs])
      expect(await readFile(join(machine, 'etc/mediabucket/env'), 'utf8')).toContain('LOG_LEVEL=warn')
      {
        await using service = await start()
        expect([service.token, await isServed(service, id)]).toEqual(['', true])
        await uploadPicture({ url: service.url, token }, 2)
      }
      await inside('dpkg', '--purge', 'mediabucket')
      for (const path of [
        'usr/lib/mediabucket',
        'usr/bin/mediabucket',
        'etc/mediabucket',
        'var/cache/mediabucket',
      ])
        expect(existsSync(join(machine, path)), path).toBe(false)
      expect(existsSync(join(machine, 'var/lib/mediabucket/catalog.db'))).toBe(true)
      await install(deb)
      await inside('env', 'MEDIABUCKET_PURGE_DATA=yes', 'dpkg', '--purge', 'mediabucket')
      expect(existsSync(join(machine, 'var/lib/mediabucket'))).toBe(false)
    },
    hours,
  )

  test.each<[string, () => Parameters<typeof runOperatorPages>[0]]>([
    [
      'npm',
      () => ({
        install: [
          // Its npm runs with the machine's own Node.js.
          `mkdir /opt/node && cp ${process.execPath} /opt/node/node && PATH=/opt/node:$PATH`,
          'export npm_config_prefix=/usr/local npm_config_audit=false npm_config_prefer_offline=true',
          `cd ${release}`,
          npmLine(),
          'ln -s /opt/node/node /usr/local/bin/node',
          'cd "$(npm root --global --prefix /usr/local)/mediabucket"',
        ],
        hasUnit: false,
        upgrade: {
          reason: 'it installs a package',
          files: [
            `for file in ${join(release, `mediabucket-*${version}.tgz`)}; do cp $file $(basename $file ${version}.tgz)0.2.0.tgz; done`,
          ],
        },
      }),
    ],
    [
      'the archive',
      () => ({
        install: [
          `sudo tar xzf ${file(`mediabucket-${version}-linux-x64.tar.gz`)} -C /opt`,
          `sudo ln -sfn /opt/mediabucket-${version}-linux-x64/bin/mediabucket /usr/local/bin/mediabucket`,
          `cd /opt/mediabucket-${version}-linux-x64`,
        ],
        hasUnit: false,
        upgrade: {
          reason: 'it unpacks a file of a release',
          files: [
            `tar c -C /opt --transform "s/-${version}-/-0.2.0-/" mediabucket-${version}-linux-x64 | gzip -1 > mediabucket-0.2.0-linux-x64.tar.gz`,
          ],
        },
      }),
    ],
    [
      'the Debian package',
      () => ({
        install: [
          `dpkg --install --force-depends ${file(`mediabucket_${version}_amd64.deb`)} | tee $STAGE/printed`,
          'grep "sudo journalctl -u mediabucket | grep mbkt_" $STAGE/printed',
          'sudo journalctl -u mediabucket | grep mbkt_',
          'test -s /usr/share/doc/mediabucket/docs/operations/alerts.yml',
          'grep -q "LESSER GENERAL PUBLIC" /usr/lib/mediabucket/licences/LGPL-3.txt',
          'man --warnings --local-file /usr/share/man/man1/mediabucket.1.gz > $STAGE/manual 2> $STAGE/warnings',
          'test ! -s $STAGE/warnings && grep -q "mediabucket token create" $STAGE/manual',
          "bash -c '. /usr/share/bash-completion/completions/mediabucket'",
        ],
        hasUnit: true,
        upgrade: {
          reason: 'it installs a package on the machine',
          files: [
            `dpkg-deb --raw-extract ${file(`mediabucket_${version}_amd64.deb`)} tree`,
            'sed -i "s/^Version: .*/Version: 0.2.0/" tree/DEBIAN/control',
            'dpkg-deb -Zgzip -z1 --root-owner-group --build tree mediabucket_0.2.0_amd64.deb',
          ],
        },
      }),
    ],
  ])(
    'the lines of the pages for operators run with %s',
    async (_, installation) => await runOperatorPages(installation(), expectOperatorPages),
    hours,
  )

  test(
    'lintian reports no errors of the Debian package',
    async () => {
      const deb = file(`mediabucket_${version}_amd64.deb`)
      const ended = await run('lintian', ['--fail-on=error', deb]).catch((error) => error)
      // Who publishes the package is set with RELEASE_MAINTAINER.
      const errors = `${ended.stdout}`.split('\n').filter((line) => line.startsWith('E:'))
      expect(errors.filter((line) => !line.includes('bogus-mail-host'))).toEqual([])
    },
    hours,
  )

  test.each(['', '-pictures'])(
    'the image%s serves from its root file system, as its user',
    async (suffix) => {
      const image = await directory(`image${suffix}`)
      await run('tar', ['xf', file(`mediabucket-${version}${suffix}-x64.oci.tar`), '-C', image])
      const read = async (digest: string) =>
        JSON.parse(await readFile(join(image, 'blobs', digest.replace(':', '/')), 'utf8'))
      const { manifests } = JSON.parse(await readFile(join(image, 'index.json'), 'utf8'))
      const { config, layers } = await read(manifests[0].digest)
      const sizes: number[] = layers.map(({ size }: { size: number }) => size)
      if (suffix === '') expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(120_000_000)
      const machine = join(image, 'root')
      await mkdir(machine)
      for (const { digest } of layers)
        await run('tar', ['xzf', join(image, 'blobs', digest.replace(':', '/')), '-C', machine])
      await useImage({ root: machine, config: readConfig((await read(config.digest)).config) })
      expect(existsSync(join(machine, 'usr/bin/ffmpeg'))).toBe(suffix !== '')
    },
    hours,
  )

  test(
    'the Dockerfile builds an image that serves from its root file system, as its user',
    async () => {
      const image = await buildDockerfile(await directory('dockerfile'), 'PICTURE_PACKAGES=poppler-utils')
      await useImage(image)
      expect(existsSync(join(image.root, 'usr/bin/pdftoppm'))).toBe(true)
    },
    hours,
  )

  test.skipIf(chosen !== 'all')(
    'two builds of a commit have the same bytes, with any umask and time zone',
    async () => {
      const sums = await readFile(file('SHA256SUMS'), 'utf8')
      await run('sh', ['-c', 'umask 002 && exec "$0" release/release.ts', process.execPath], {
        cwd: root,
        env: { ...process.env, TZ: 'Asia/Tokyo' },
        maxBuffer: 10_000_000,
      })
      expect(await readFile(file('SHA256SUMS'), 'utf8')).toBe(sums)
    },
    hours,
  )
})
