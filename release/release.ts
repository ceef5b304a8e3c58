import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { listMaterials } from './bill-of-materials.ts'
import { writeDebianPackage } from './debian.ts'
import { writeImage } from './image.ts'
import { packAll, root, runIn } from './pack.ts'
import { architectures, createTree, debianNames, version, writeArchive } from './tree.ts'

// npm run release [-- --without-images]: builds everything that is published into dist/release. Two runs on one commit write the same
// bytes. Images need root, mmdebstrap and Debian packages of their architecture.

const release = join(root, 'dist/release')
const log = (text: string) => console.error(text)

/** The time of the commit, which is that of all files. Seconds since 1970. */
const time =
  process.env['SOURCE_DATE_EPOCH'] ?? (await runIn(root)('git', 'log', '-1', '--format=%ct')).stdout.trim()

// The modes of new files are those of the archives.
process.umask(0o022)
await rm(release, { recursive: true, force: true })
await mkdir(release, { recursive: true })
const scratch = await mkdtemp(join(root, 'dist/scratch-'))
try {
  log('the packages for npm')
  const tarballs = await packAll(scratch)
  for (const tarball of Object.values(tarballs)) await copyFile(tarball, join(release, basename(tarball)))
  log('the bill of materials')
  await writeFile(join(release, `mediabucket-${version}.cdx.json`), await listMaterials(scratch, tarballs))
  for (const architecture of architectures) {
    const name = `mediabucket-${version}-linux-${architecture}`
    const tree = join(scratch, name)
    log(`${name}: archive, Debian package`)
    await createTree(tree, architecture, tarballs)
    await writeArchive(scratch, name, join(release, `${name}.tar.gz`), time)
    await writeDebianPackage(
      tree,
      architecture,
      join(release, `mediabucket_${version}_${debianNames[architecture]}.deb`),
      {
        time,
        version,
      },
    )
    // The scripts of Debian packages of another architecture do not run on this machine.
    if (process.arch !== architecture || process.argv.includes('--without-images')) continue
    for (const [tag, hasPictureTools] of [
      [version, false],
      [`${version}-pictures`, true],
    ] as const) {
      log(`the image mediabucket:${tag}`)
      const file = join(release, `mediabucket-${tag}-${architecture}.oci.tar`)
      await writeImage(tree, architecture, { file, tag, hasPictureTools, time })
    }
  }
  const { stdout } = await runIn(release)('sha256sum', ...(await readdir(release)).sort())
  await writeFile(join(release, 'SHA256SUMS'), stdout)
  console.log(stdout.trim())
} finally {
  await rm(scratch, { recursive: true, force: true })
}
