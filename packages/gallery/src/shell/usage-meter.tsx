import { formatSize } from '../format/size.ts'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** The bytes and files of the bucket, and its limits. The meter shows the limit that is closest. */
export function UsageMeter() {
  const { usage } = useGallery()
  const bucket = usage.bucket.value
  if (bucket === null) return <div class="usage" />
  const { bytes, max_bytes, items, max_items } = bucket
  const text = [
    max_bytes === null
      ? strings.header.used(formatSize(bytes))
      : strings.header.usedOf(formatSize(bytes), formatSize(max_bytes)),
    ...(max_items === null ? [] : [strings.header.itemsOf(items, max_items)]),
  ].join(' · ')
  const shares = [
    ...(max_bytes === null ? [] : [bytes / Math.max(max_bytes, 1)]),
    ...(max_items === null ? [] : [items / Math.max(max_items, 1)]),
  ]
  const share = Math.min(1, Math.max(0, ...shares))
  return (
    <div class="usage">
      <span>{text}</span>
      {shares.length > 0 && (
        <meter
          class="usage-meter"
          aria-label={strings.header.usage}
          min={0}
          max={1}
          high={0.9}
          value={share}
        />
      )}
    </div>
  )
}
