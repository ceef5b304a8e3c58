import { type PictureMedia, pictureOf, sourcesOf } from '@mediabucket/client'
import { computed, defineComponent, h, onMounted, type PropType, ref, type StyleValue } from 'vue'

/**
 * An `<img>` whose size the browser chooses, with a placeholder until it is loaded. `sizes` states how wide the page shows it. An item without
 * a picture shows the slot, nothing by default.
 */
export const Picture = defineComponent({
  name: 'MediabucketPicture',
  inheritAttrs: false,
  props: {
    /** The media object of an item. In a private bucket it needs signed URLs: `urls: 'signed'` of `useItems` and `describe`. */
    media: { type: Object as PropType<PictureMedia> },
    /** The names of the sizes from which the browser chooses. Default: all that show the whole picture. */
    variants: { type: Array as PropType<readonly string[]> },
    /** The name of the size for people who ask for less motion, where the others are animated. */
    still: { type: String },
    /** Instead: the URL of an item, in a private bucket a link with `variant: '*'`. */
    src: { type: String },
    /** With `src`: widths of the service, for `srcset`. Pixels. */
    widths: { type: Array as PropType<readonly number[]>, default: () => [] },
    /** Default: the alternative text of the item, or else its name. */
    alt: { type: String },
  },
  setup(props, { attrs, slots }) {
    const image = ref<HTMLImageElement | null>(null)
    const loadedSrc = ref<string | null>(null)
    const picture = computed(() =>
      props.media === undefined
        ? null
        : pictureOf(props.media, { variants: props.variants, still: props.still }),
    )
    const sources = computed(() =>
      props.src === undefined ? picture.value : sourcesOf(props.src, props.widths),
    )
    // Before the page is hydrated, the picture may have been loaded without an event.
    onMounted(() => {
      const { complete, naturalWidth } = image.value ?? { complete: false, naturalWidth: 0 }
      if (complete && naturalWidth > 0) loadedSrc.value = sources.value?.src ?? null
    })
    return () => {
      if (sources.value === null) return slots['default']?.()
      const { src, srcset } = sources.value
      const { width, height, alt, placeholder, objectPosition } = picture.value ?? {}
      const isLoaded = loadedSrc.value === src
      const shown = h('img', {
        width,
        height,
        loading: 'lazy',
        decoding: 'async',
        ...attrs,
        ref: image,
        alt: props.alt ?? alt,
        srcset,
        src,
        style: [styleOf(objectPosition ?? null, isLoaded ? null : (placeholder ?? null)), attrs['style']],
        onLoad: [
          () => {
            loadedSrc.value = src
          },
          ...[attrs['onLoad'] ?? []].flat(),
        ],
      })
      const still = picture.value?.still
      if (!still) return shown
      return h('picture', [h('source', { media: '(prefers-reduced-motion: reduce)', srcset: still }), shown])
    }
  },
})

function styleOf(objectPosition: string | null, placeholder: string | null): StyleValue {
  return {
    ...(objectPosition !== null && { objectPosition }),
    ...(placeholder !== null && {
      backgroundImage: `url(${placeholder})`,
      backgroundPosition: objectPosition ?? 'center',
      backgroundRepeat: 'no-repeat',
      backgroundSize: 'cover',
    }),
  }
}
