import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runIn } from './pack.ts'
import { type Architecture, debianNames, reproducible, version } from './tree.ts'

/** The Debian release of the image, and what the service needs of it; tini ends processes that lost their parent. */
const suite = 'bookworm'
const basePackages = ['libatomic1', 'libstdc++6', 'tini', 'util-linux']
const picturePackages = ['ffmpeg', 'poppler-utils', 'libheif-examples']

const user = 1000

/** The settings of a container, which docs/operations/container.md describes. */
const containerConfig = {
  User: `${user}:${user}`,
  WorkingDir: '/data',
  Env: [
    'PATH=/opt/mediabucket/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'NODE_ENV=production',
    'MEDIABUCKET_HOST=0.0.0.0',
    'MEDIABUCKET_PORT=8080',
    'MEDIABUCKET_DATA=/data',
    // A root file system that is read-only has no place for compiled modules except this one.
    'XDG_CACHE_HOME=/tmp',
  ],
  Entrypoint: ['/usr/bin/tini', '--', 'mediabucket'],
  Cmd: ['serve'],
  Volumes: { '/data': {} },
  ExposedPorts: { '8080/tcp': {} },
  StopSignal: 'SIGTERM',
  // Nanoseconds.
  Healthcheck: {
    Test: [
      'CMD',
      '/opt/mediabucket/lib/node',
      '-e',
      'fetch("http://127.0.0.1:" + process.env.MEDIABUCKET_PORT + "/readyz").then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))',
    ],
    Interval: 30e9,
    Timeout: 5e9,
    StartPeriod: 60e9,
  },
}

/** A layer: the compressed archive of a file system. */
interface Layer {
  readonly file: string
  /** The hash of the archive before it was compressed. */
  readonly diffId: string
}

/** Debian with the given packages, without what the service does not need. Needs mmdebstrap and root. */
async function debianLayer(
  directory: string,
  architecture: Architecture,
  packages: readonly string[],
  time: string,
): Promise<Layer> {
  const tar = join(directory, 'debian.tar')
  const without = ['doc', 'locale', 'man', 'info'].map(
    (name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`,
  )
  await runIn(directory, { SOURCE_DATE_EPOCH: time })(
    'mmdebstrap',
    '--quiet',
    '--variant=essential',
    `--architectures=${debianNames[architecture]}`,
    `--include=${packages.join(',')}`,
    ...without,
    '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    `--customize-hook=echo 'mediabucket:x:${user}:${user}::/data:/usr/sbin/nologin' >> "$1/etc/passwd"`,
    `--customize-hook=echo 'mediabucket:x:${user}:' >> "$1/etc/group"`,
    '--customize-hook=rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/* "$1"/var/log/*',
    suite,
    tar,
  )
  return compress(tar)
}

/** The service in /opt/mediabucket, and the directory of its data. */
async function serviceLayer(directory: string, tree: string, time: string): Promise<Layer> {
  const [files, data] = [join(directory, 'files'), join(directory, 'data')]
  await mkdir(join(files, 'opt'), { recursive: true })
  await runIn(directory)('cp', '-a', '--link', tree, join(files, 'opt/mediabucket'))
  await mkdir(join(data, 'data'), { recursive: true, mode: 0o700 })
  const tar = join(directory, 'service.tar')
  const run = runIn(directory)
  await run('tar', 'cf', tar, ...reproducible(time), '-C', files, 'opt')
  const owned = reproducible(time).map((option) => option.replace(/^(--(?:owner|group))=0$/, `$1=${user}`))
  await run('tar', 'rf', tar, ...owned, '-C', data, 'data')
  await rm(files, { recursive: true })
  return compress(tar)
}

async function compress(tar: string): Promise<Layer> {
  const diffId = await hashOf(tar)
  await runIn(dirname(tar))('gzip', '-n', tar)
  return { file: `${tar}.gz`, diffId }
}

async function hashOf(file: string): Promise<string> {
  const { stdout } = await runIn(dirname(file))('sha256sum', file)
  return `sha256:${stdout.slice(0, 64)}`
}

/** Writes an image as an archive in the layout of OCI, for `skopeo copy`, `podman load` and `docker load`, to `file`. */
export async function writeImage(
  tree: string,
  architecture: Architecture,
  { file, tag, hasPictureTools, time }: { file: string; tag: string; hasPictureTools: boolean; time: string },
): Promise<void> {
  const directory = await mkdtemp(join(dirname(tree), 'image-'))
  const layout = join(directory, 'layout')
  await mkdir(join(layout, 'blobs/sha256'), { recursive: true })
  const store = async (from: string, mediaType: string) => {
    const digest = await hashOf(from)
    const path = join(layout, 'blobs', digest.replace(':', '/'))
    await rename(from, path)
    return { mediaType, digest, size: (await stat(path)).size }
  }
  const storeJson = async (value: unknown, mediaType: string) => {
    const path = join(directory, 'value.json')
    await writeFile(path, JSON.stringify(value))
    return store(path, mediaType)
  }
  const packages = hasPictureTools ? [...basePackages, ...picturePackages] : basePackages
  const layers = [
    await debianLayer(directory, architecture, packages, time),
    await serviceLayer(directory, tree, time),
  ]
  const created = new Date(Number(time) * 1_000).toISOString()
  const config = await storeJson(
    {
      created,
      architecture: debianNames[architecture],
      os: 'linux',
      config: {
        ...containerConfig,
        Labels: { 'org.opencontainers.image.version': version, 'org.opencontainers.image.licenses': 'MIT' },
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    },
    'application/vnd.oci.image.config.v1+json',
  )
  const stored = []
  for (const { file } of layers) stored.push(await store(file, 'application/vnd.oci.image.layer.v1.tar+gzip'))
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const manifest = await storeJson({ schemaVersion: 2, mediaType, config, layers: stored }, mediaType)
  const annotations = {
    'org.opencontainers.image.ref.name': tag,
    'io.containerd.image.name': `mediabucket:${tag}`,
  }
  await writeFile(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  await writeFile(
    join(layout, 'index.json'),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] }),
  )
  await runIn(layout)('tar', 'cf', file, ...reproducible(time), 'blobs', 'index.json', 'oci-layout')
  await rm(directory, { recursive: true })
}
