import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readConfig } from '../../packages/server/src/service/config.ts'
import { ConfigError } from '../../packages/server/src/service/environment.ts'
import { settings } from '../../packages/server/src/service/settings.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { runCommand, startServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'

const warnings = (server: { log: () => { msg: string; [member: string]: unknown }[] }) =>
  server
    .log()
    .filter(({ level }) => level === 40)
    .map(({ msg }) => msg)

test('O7 all invalid settings are reported together, each with its valid values', async () => {
  await using directory = await temporaryDirectory()
  const faulty = {
    MEDIABUCKET_HOST: 'a b',
    MEDIABUCKET_PORT: '80800',
    MEDIABUCKET_BASE_URL: 'media.example.org',
    MEDIABUCKET_ENVELOPE: 'none',
    MEDIABUCKET_EXTENSIONS: 'yes',
    MEDIABUCKET_LINKS: 'some',
    MEDIABUCKET_MAX_FILE_SIZE: 'huge',
    MEDIABUCKET_WORKERS: '0',
    MEDIABUCKET_CORS_ORIGINS: 'https://app.example.org/path',
    MEDIABUCKET_MEDIA_MAX_AGE: '1 day',
    MEDIABUCKET_VARIANT_TIMEOUT: '-1s',
    MEDIABUCKET_IDLE_TIMEOUT: '0',
    MEDIABUCKET_SHUTDOWN_TIMEOUT: '1.5s',
    MEDIABUCKET_LOG_LEVEL: 'loud',
    MEDIABUCKET_LOG_FORMAT: 'xml',
  }
  const data = join(directory.path, 'data')
  const failure = await runCommand(['serve'], { ...faulty, MEDIABUCKET_DATA: data }).catch((error) => error)
  expect(failure).toMatchObject({ code: 2, stdout: '' })
  expect(failure.stderr).toMatch(/^mediabucket: 15 settings are wrong:/)
  for (const [name, value] of Object.entries(faulty)) {
    const { reader } = settings[name as keyof typeof settings]
    expect(failure.stderr).toContain(`${name} is ${JSON.stringify(value)}; it must be ${reader.accepts}.`)
  }
  expect(failure.stderr).not.toMatch(/\.[jt]s:/)
  expect(await directory.names()).toEqual([])
})

/** A value of each setting that is not the default. */
const changed: { readonly [Name in keyof typeof settings]: string } = {
  MEDIABUCKET_HOST: '0.0.0.0',
  MEDIABUCKET_PORT: '8081',
  MEDIABUCKET_S3_PORT: '8082',
  MEDIABUCKET_S3_HOST: 's3.example.org',
  MEDIABUCKET_S3_REGION: 'eu-central-1',
  MEDIABUCKET_S3_BUCKET_OPTIONS: 'public-keys=on, public-list=on, trash-days=30',
  MEDIABUCKET_WORKERS: '4',
  MEDIABUCKET_BASE_URL: 'https://media.example.org/box/',
  MEDIABUCKET_MEDIA_BASE_URL: 'https://files.example.org',
  MEDIABUCKET_DATA: '/var/lib/mediabucket',
  MEDIABUCKET_DATABASE_URL: 'postgres://db.example.org/media',
  MEDIABUCKET_BLOBS_URL: 's3://media/files?region=eu-1',
  MEDIABUCKET_ENVELOPE: 'wrapped',
  MEDIABUCKET_EXTENSIONS: 'off',
  MEDIABUCKET_LINKS: 'window',
  MEDIABUCKET_GALLERY: 'off',
  MEDIABUCKET_CACHE: '1GB',
  MEDIABUCKET_SENDFILE: 'redirect',
  MEDIABUCKET_MAX_FILE_SIZE: '1TB',
  MEDIABUCKET_INLINE_SIZE: '0',
  MEDIABUCKET_UPLOAD_EXPIRY: '7d',
  MEDIABUCKET_MIN_FREE: '10GB',
  MEDIABUCKET_CORS_ORIGINS: 'https://app.example.org',
  MEDIABUCKET_TRUSTED_PROXIES: '10.0.0.1',
  MEDIABUCKET_WEBHOOK_ALLOW: '10.1.0.0/16',
  MEDIABUCKET_URL_UPLOADS: 'public, 10.1.0.0/16',
  MEDIABUCKET_SCAN: 'clamd:[::1]:3310',
  MEDIABUCKET_SCAN_TIMEOUT: '1m',
  MEDIABUCKET_SCAN_FAILURE: 'accept',
  MEDIABUCKET_MCP: 'read',
  MEDIABUCKET_JWT_ISSUER: 'https://login.example.org/app',
  MEDIABUCKET_JWT_JWKS_URL: 'https://login.example.org/keys',
  MEDIABUCKET_JWT_AUDIENCE: 'https://media.example.org',
  MEDIABUCKET_JWT_BUCKET: 'app-{email}',
  MEDIABUCKET_JWT_CREATE_BUCKETS: 'on',
  MEDIABUCKET_JWT_BUCKET_OPTIONS: 'max-items=1000, max-bytes=1GB, trash-days=30, private=on',
  MEDIABUCKET_JWT_SCOPES: '/app/roles',
  MEDIABUCKET_JWT_DEFAULT_SCOPES: 'media:read media:write',
  MEDIABUCKET_OIDC_CLIENT_ID: 'gallery',
  MEDIABUCKET_OIDC_PARAMETERS: 'scope=openid+offline_access&resource=https%3A%2F%2Fmedia.example.org',
  MEDIABUCKET_TOKEN_RATE: '10/1s',
  MEDIABUCKET_ADDRESS_RATE: 'off',
  MEDIABUCKET_AUTH_FAILURE_RATE: '5/1h',
  MEDIABUCKET_MEDIA_MAX_AGE: '1h',
  MEDIABUCKET_MAX_LINK_LIFETIME: '30d',
  MEDIABUCKET_VARIANTS: 'thumb=200',
  MEDIABUCKET_CROP: 'attention',
  MEDIABUCKET_NAMES: 'on',
  MEDIABUCKET_RENDER_AHEAD: 'off',
  MEDIABUCKET_VARIANT_PROCESSES: '8',
  MEDIABUCKET_VARIANT_TIMEOUT: '1m',
  MEDIABUCKET_VARIANT_MEMORY: '2GB',
  MEDIABUCKET_MAX_CONNECTIONS: '0',
  MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '10',
  MEDIABUCKET_MAX_STREAMS_PER_TOKEN: '20',
  MEDIABUCKET_IDLE_TIMEOUT: '30s',
  MEDIABUCKET_SHUTDOWN_TIMEOUT: '25s',
  MEDIABUCKET_SHUTDOWN_DELAY: '5s',
  MEDIABUCKET_READ_ONLY: 'on',
  MEDIABUCKET_LOG_LEVEL: 'warn',
  MEDIABUCKET_AUDIT: 'all',
  MEDIABUCKET_AUDIT_DAYS: '30',
  MEDIABUCKET_CHANGES_DAYS: '3',
  MEDIABUCKET_LOG_FORMAT: 'json',
}

test('O7 every setting is read from its variable, in its unit', () => {
  for (const [name, { defaultText }] of Object.entries(settings))
    expect(changed, name).not.toMatchObject({ [name]: defaultText })
  const { config, warnings } = readConfig({ ...changed, PATH: '/bin' })
  expect(warnings).toEqual([])
  const bucketOptions = { maxItems: 1_000, maxBytes: 1e9, trashDays: 30, isPrivate: true }
  expect(config).toEqual({
    host: '0.0.0.0',
    port: 8081,
    s3Port: 8082,
    s3Host: 's3.example.org',
    s3Region: 'eu-central-1',
    s3BucketOptions: { publicKeys: true, publicList: true, trashDays: 30 },
    workers: 4,
    baseUrl: 'https://media.example.org/box',
    mediaBaseUrl: 'https://files.example.org',
    data: '/var/lib/mediabucket',
    databaseUrl: 'postgres://db.example.org/media',
    blobsUrl: expect.objectContaining({ bucket: 'media', region: 'eu-1' }),
    envelope: 'wrapped',
    extensions: false,
    links: 'window',
    gallery: false,
    cache: 1e9,
    sendfile: { header: 'location' },
    maxFileSize: 1e12,
    inlineSize: 0,
    uploadExpiry: 7 * 86_400_000,
    minFree: 1e10,
    corsOrigins: ['https://app.example.org'],
    trustedProxies: ['10.0.0.1'],
    webhookAllow: ['10.1.0.0/16'],
    mcp: 'read',
    crop: 'attention',
    names: true,
    scan: { type: 'clamd', at: { host: '::1', port: 3310 } },
    scanTimeout: 60_000,
    scanFailure: 'accept',
    urlUploads: { isPublicAllowed: true, allowed: ['10.1.0.0/16'] },
    jwtIssuer: 'https://login.example.org/app',
    jwtJwksUrl: 'https://login.example.org/keys',
    jwtAudience: 'https://media.example.org',
    jwtBucket: expect.objectContaining({ claim: 'email' }),
    jwtCreateBuckets: true,
    jwtBucketOptions: bucketOptions,
    jwtScopes: '/app/roles',
    jwtDefaultScopes: ['media:read', 'media:write'],
    oidcClientId: 'gallery',
    oidcParameters: { scope: 'openid offline_access', resource: 'https://media.example.org' },
    tokenRate: { requests: 10, window: 1_000 },
    addressRate: null,
    authFailureRate: { requests: 5, window: 3_600_000 },
    mediaMaxAge: 3_600_000,
    maxLinkLifetime: 30 * 86_400_000,
    variants: expect.arrayContaining([{ name: 'thumb', width: 200, height: 200, fit: 'contain' }]),
    renderAhead: false,
    readOnly: true,
    shutdownDelay: 5_000,
    variantProcesses: 8,
    variantTimeout: 60_000,
    variantMemory: 2e9,
    maxConnections: 0,
    maxConnectionsPerAddress: 10,
    maxStreamsPerToken: 20,
    idleTimeout: 30_000,
    shutdownTimeout: 25_000,
    logLevel: 'warn',
    audit: 'all',
    auditDays: 30,
    changesDays: 3,
    logFormat: 'json',
    issuer: {
      issuer: 'https://login.example.org/app',
      jwksUrl: 'https://login.example.org/keys',
      audience: 'https://media.example.org',
      bucket: expect.objectContaining({ claim: 'email' }),
      newBuckets: bucketOptions,
      scopesClaim: '/app/roles',
      defaultScopes: ['media:read', 'media:write'],
      signIn: {
        clientId: 'gallery',
        name: 'login.example.org',
        scope: 'openid offline_access',
        parameters: { resource: 'https://media.example.org' },
      },
    },
    searchPath: '/bin',
  })
})

test('O7 with little memory, some defaults are lower', () => {
  const little = (env: Readonly<Record<string, string>>) => {
    const { cache, variantProcesses } = readConfig(env, true).config
    return [cache, variantProcesses]
  }
  expect(little({})).toEqual([16e6, 1])
  expect(little({ MEDIABUCKET_CACHE: '40MB', MEDIABUCKET_VARIANT_PROCESSES: '3' })).toEqual([40e6, 3])
})

test('O7 the two ports must differ, unless free ones are selected', () => {
  const message = 'MEDIABUCKET_S3_PORT is "8080"; it must be another port than MEDIABUCKET_PORT.'
  expect(() => readConfig({ MEDIABUCKET_S3_PORT: '8080' })).toThrow(new ConfigError([message]))
  expect(readConfig({ MEDIABUCKET_PORT: '0', MEDIABUCKET_S3_PORT: '0' }).config.s3Port).toBe(0)
})

test('O7 a command refuses invalid settings', async () => {
  const failure = runCommand(['token', 'list'], { MEDIABUCKET_PORT: 'x' })
  await expect(failure).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('MEDIABUCKET_PORT'),
  })
})

test('O7 an unknown setting that resembles none causes a warning; an empty one counts as unset', async () => {
  await using server = await startServer({
    MEDIABUCKET_OWN_THING: '1',
    MEDIABUCKET_TOKEN: 'x',
    MEDIABUCKET_LINKS: '',
    MEDIABUCKET_MAX_FILESIZE: '',
  })
  expect(warnings(server)).toEqual(['MEDIABUCKET_OWN_THING is not a setting of Mediabucket and is ignored.'])
})

test.each([
  ['MEDIABUCKET_DATABASEURL', 'MEDIABUCKET_DATABASE_URL'],
  ['MEDIABUCKET_DATABASE', 'MEDIABUCKET_DATABASE_URL'],
  ['MEDIABUCKET_MAX_FILESIZE', 'MEDIABUCKET_MAX_FILE_SIZE'],
  ['MEDIABUCKET_DAAT', 'MEDIABUCKET_DATA'],
])('O7 the unknown setting %s stops the start and names %s', (name, known) => {
  const message = `${name} is not a setting of Mediabucket. Did you mean ${known}?`
  expect(() => readConfig({ [name]: 'secret' })).toThrow(new ConfigError([message]))
})

test('O7 an unknown setting that may decide who has access stops the start, also if it resembles none', () => {
  const message =
    'MEDIABUCKET_JWT_TENANTS_ALLOWED is not a setting of Mediabucket. See: mediabucket help settings'
  expect(() => readConfig({ MEDIABUCKET_JWT_TENANTS_ALLOWED: 'a' })).toThrow(new ConfigError([message]))
})

test('O7 the variables that Kubernetes sets for a service, and others of operators, stop no start', () => {
  const names = [
    'SERVICE_HOST',
    'SERVICE_PORT',
    'SERVICE_PORT_HTTP',
    'PORT_8080_TCP',
    'PORT_8080_TCP_ADDR',
    'VERSION',
    'IMAGE',
  ]
  const env = Object.fromEntries(names.map((name) => [`MEDIABUCKET_${name}`, 'x']))
  expect(readConfig(env).warnings).toHaveLength(names.length)
})

test('O7 with --env-file, a command has the settings of the service, and those that are set take precedence', async () => {
  await using directory = await temporaryDirectory()
  const file = join(directory.path, 'mediabucket.env')
  const data = join(directory.path, 'data')
  await writeFile(file, `# settings\nMEDIABUCKET_DATA="${data}"\nMEDIABUCKET_AUDIT=changes\n`)
  await runCommand(['--env-file', file, 'token', 'create', '--bucket', 'mine'], {})
  const { stdout } = await runCommand([`--env-file=${file}`, 'audit', '--csv'], {})
  expect(stdout).toContain('bucket-create')
  const other = { MEDIABUCKET_DATA: join(directory.path, 'other') }
  await expect(runCommand(['--env-file', file, 'audit'], other)).rejects.toMatchObject({
    stderr: expect.stringContaining('other contains no data'),
  })
  for (const [args, stderr] of [
    [['audit', '--env-file', file], '--env-file FILE must be before the command'],
    [['--env-file'], '--env-file needs a FILE'],
  ] as const)
    await expect(runCommand(args, {})).rejects.toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining(stderr) },
    })
})

test('O7, L18 listening on a public address without a base URL causes a warning that shows the start of URLs', async () => {
  await using server = await startServer({ MEDIABUCKET_HOST: '0.0.0.0' })
  expect(warnings(server)).toEqual([expect.stringMatching(/0\.0\.0\.0.*MEDIABUCKET_BASE_URL/)])
  expect((await upload(server, 'x')).url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/media\//)
  await using named = await startServer({
    MEDIABUCKET_HOST: '0.0.0.0',
    MEDIABUCKET_BASE_URL: 'https://media.example.org',
  })
  expect(warnings(named)).toEqual([])
})

test('L18 an IPv6 address is in brackets in every URL', async () => {
  await using server = await startServer({ MEDIABUCKET_HOST: '::1' })
  const base = /ready at (\S+)/.exec(server.stdout())?.[1] ?? ''
  expect(base).toMatch(/^http:\/\/\[::1\]:\d+$/)
  const response = await fetch(`${base}/api/media`, { headers: { authorization: `Bearer ${server.token}` } })
  expect(await response.json()).toMatchObject({ path: `${base}/api/media` })
  expect(warnings(server)).toEqual([])
})

test('L18 a host name is used in every URL as it was set', async () => {
  await using server = await startServer({ MEDIABUCKET_HOST: 'localhost' })
  const { url } = await upload(server, 'x')
  expect(url).toMatch(/^http:\/\/localhost:\d+\/media\//)
  expect(await (await fetch(url)).text()).toBe('x')
  expect(warnings(server)).toEqual([])
})

test.each(['MEDIABUCKET_PORT', 'MEDIABUCKET_S3_PORT'])(
  'O7 an address in use is reported in one line with the cause and the remedy, and the next start prints the first token: %s',
  async (setting) => {
    await using directory = await temporaryDirectory()
    const holder = createServer()
    const port = await new Promise<number>((resolve) => {
      holder.listen(0, '127.0.0.1', () => {
        const address = holder.address()
        resolve(typeof address === 'object' && address ? address.port : 0)
      })
    })
    try {
      const settings = { MEDIABUCKET_DATA: directory.path, MEDIABUCKET_PORT: '0', [setting]: String(port) }
      const failure = await runCommand(['serve'], settings).catch((error) => error)
      expect(failure).toMatchObject({ code: 1, stdout: '' })
      expect(failure.stderr.replace(/^\{.*\}\n/gm, '')).toBe(
        `mediabucket: the address 127.0.0.1:${port} is already in use. Stop the program that uses it, or set ${setting} to a free port.\n`,
      )
      expect(failure.stderr).not.toMatch(/\.[jt]s:/)
    } finally {
      holder.close()
    }
    await using server = await startServer({}, directory.path)
    expect((await server.request('/api/media')).status).toBe(200)
  },
)

test.each([
  ['MEDIABUCKET_HOST', 'no-such-host.invalid'],
  ['MEDIABUCKET_HOST', '192.0.2.1'],
  ['MEDIABUCKET_DATA', '«file»'],
  ['MEDIABUCKET_DATA', '«file»/below'],
])('O7 %s=%s cannot be used: the message names the setting and shows no stack', async (name, value) => {
  await using directory = await temporaryDirectory()
  const file = join(directory.path, 'file')
  await writeFile(file, '')
  const environment = {
    MEDIABUCKET_DATA: directory.path,
    MEDIABUCKET_PORT: '0',
    [name]: value.replace('«file»', file),
  }
  const failure = await runCommand(['serve'], environment).catch((error) => error)
  expect(failure).toMatchObject({ code: 1, stdout: '' })
  expect(failure.stderr).toMatch(new RegExp(`^mediabucket: .*${name}`, 'm'))
  expect(failure.stderr).not.toMatch(/\.[jt]s:/)
})

test.each([
  ['«file»', /^mediabucket: .*\/file is a file, not a directory\. /],
  ['«file»/below/it', /^mediabucket: .*\/file is a file, not a directory\. /],
  ['/proc/mediabucket/data', /^mediabucket: \/proc\/mediabucket cannot be created \(ENOENT\)\. /],
])('O7 a data directory at %s is refused at once, with the reason', async (value, pattern) => {
  await using directory = await temporaryDirectory()
  const file = join(directory.path, 'file')
  await writeFile(file, '')
  const env = { MEDIABUCKET_DATA: value.replace('«file»', file), MEDIABUCKET_PORT: '0' }
  for (const args of [['serve'], ['token', 'create', '--bucket', 'mine']])
    await expect(runCommand(args, env)).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(pattern),
    })
})

test('O3 MEDIABUCKET_LOG_LEVEL reduces the log', async () => {
  await using server = await startServer({ MEDIABUCKET_LOG_LEVEL: 'silent' })
  expect(server.stderr()).toBe('')
})
