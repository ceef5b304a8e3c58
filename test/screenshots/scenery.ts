import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'

/** The pictures of the Debian package under CC BY-SA 4.0; docs/images/README.md names their authors. */
const titles = [
  'Altai',
  'SafeLanding',
  'Volna',
  'Shell',
  'IceCold',
  'Patak',
  'Flow',
  'Honeywave',
  'Kay',
  'MilkyWay',
]
const debianPackage = 'plasma-workspace-wallpapers'

/** Downloads and unpacks the package once, without installing it; returns the directory of its pictures. */
function unpacked(): string {
  const directory = join(tmpdir(), 'mediabucket-scenery')
  const pictures = join(directory, 'usr/share/wallpapers')
  if (existsSync(pictures)) return pictures
  mkdirSync(directory, { recursive: true })
  execFileSync('apt-get', ['download', '-q', debianPackage], { cwd: directory, stdio: 'ignore' })
  const [archive = ''] = readdirSync(directory).filter((name) => name.endsWith('.deb'))
  execFileSync('dpkg', ['-x', archive, '.'], { cwd: directory })
  return pictures
}

/** File names for the screenshots. */
const names = [
  'Lake in the Altai.jpg',
  'Poster, rocket.png',
  'Shoreline.jpg',
  'Stage lights.jpg',
  'Ice floe.jpg',
  'Paper planes.jpg',
  'River of colour.jpg',
  'Canyon at dusk.jpg',
  'Cover, draft 3.png',
  'Confetti.jpg',
]

/** Landscape, portrait and square parts of the ten pictures, by file name. */
export async function scenery(): Promise<ReadonlyMap<string, Buffer<ArrayBufferLike>>> {
  const pictures = unpacked()
  const made = new Map<string, Buffer<ArrayBufferLike>>()
  const shapes = [
    { width: 2400, height: 1600, gravity: 'centre', suffix: '' },
    { width: 1200, height: 1600, gravity: 'east', suffix: ' (upright)' },
    { width: 1400, height: 1400, gravity: 'west', suffix: ' (square)' },
  ]
  for (const { suffix, width, height, gravity } of shapes) {
    for (const [index, title] of titles.entries()) {
      const directory = join(pictures, title, 'contents/images')
      const [file = ''] = readdirSync(directory).filter((name) => name.startsWith('5120'))
      const name = names[index] ?? title
      const part = sharp(join(directory, file)).resize(width, height, { fit: 'cover', position: gravity })
      const bytes = name.endsWith('.png') ? part.png({ palette: true }) : part.jpeg({ quality: 82 })
      made.set(name.replace(/(\.\w+)$/, `${suffix}$1`), await bytes.toBuffer())
    }
  }
  return made
}
