import type { Texts } from './en.ts'
import { formatCount } from './locale.ts'

const files = (count: number) => (count === 1 ? '1 archivo' : `${formatCount(count)} archivos`)

const viewer: Texts['viewer'] = {
  label: (name: string) => `Archivo: ${name}`,
  position: (position: number, total: number) => `${formatCount(position)} de ${formatCount(total)}`,
  previous: 'Archivo anterior',
  next: 'Archivo siguiente',
  details: 'Detalles',
  copy: 'Copiar enlace',
  download: 'Descargar',
  delete: 'Eliminar',
  openPdf: 'Abrir el PDF',
  firstPage: 'La primera página del PDF',
  open: 'Abrir en otra pestaña',
  noPreview: 'No hay vista previa para este tipo de archivo. Descárgalo para abrirlo.',
  noPicture: 'El navegador no puede mostrar esta imagen. Descárgala para verla.',
  damaged: 'Esta imagen está dañada. Sube el original de nuevo.',
  partlyShown: 'Esta imagen está dañada y solo se muestra en parte. Sube el original de nuevo.',
  noPlayback: 'El navegador no puede reproducir este archivo. Descárgalo para reproducirlo.',
  loading: 'Cargando…',
  notLoaded: 'No se pudo cargar el visor. Comprueba tu conexión y recarga la página.',
  noText: 'No se pudo cargar este texto. Inténtalo más tarde o descarga el archivo.',
  encoding: 'Codificación',
  automatic: 'Automática',
  emptyText: 'Este archivo está vacío.',
  textPreview: (shown: string, size: string) =>
    `Los primeros ${shown} de ${size}. Descarga el archivo para leerlo entero.`,
  deleted: 'Este archivo fue eliminado.',
  failed: 'No se pudo cargar este archivo. Inténtalo más tarde.',
}

const deletion: Texts['deletion'] = {
  title: (count: number) => (count === 1 ? '¿Eliminar este archivo?' : `¿Eliminar ${files(count)}?`),
  one: (name: string) => `«${name}» se eliminará para todos los que tengan su enlace. No se puede deshacer.`,
  many: 'Se eliminarán para todos los que tengan sus enlaces. No se puede deshacer.',
  confirm: (count: number) => (count === 1 ? 'Eliminar' : `Eliminar ${files(count)}`),
  busy: (done: number, count: number) => `Eliminando ${formatCount(done + 1)} de ${formatCount(count)}…`,
  done: (count: number) => (count === 1 ? '1 archivo eliminado.' : `${files(count)} eliminados.`),
  failed: (count: number, reason: string) =>
    count === 1
      ? `No se pudo eliminar 1 archivo. ${reason}`
      : `No se pudieron eliminar ${files(count)}. ${reason}`,
  trashed: (count: number) =>
    count === 1 ? '1 archivo movido a la papelera.' : `${files(count)} movidos a la papelera.`,
  moving: (count: number) => `Moviendo ${files(count)} a la papelera…`,
  undo: 'Deshacer',
  restored: (count: number) => (count === 1 ? '1 archivo restaurado.' : `${files(count)} restaurados.`),
  missing: (count: number) =>
    count === 1 ? '1 archivo ya no está en la papelera.' : `${files(count)} ya no están en la papelera.`,
  refused: (reason: string) => `No se ha conseguido. ${reason}`,
}

const uploads: Texts['uploads'] = {
  label: 'Subidas',
  drop: 'Suelta para subir',
  dropNotAllowed: 'Este token no puede subir archivos',
  dropNotAllowedHint: 'Inicia sesión con un token que tenga el permiso media:write.',
  dropHint: (bucket: string) => `Los archivos y carpetas se suben a «${bucket}».`,
  sending: (done: number, all: number) => `Subiendo: ${formatCount(done)} de ${files(all)}`,
  waitingForServer: 'Esperando al servidor',
  paused: (left: number) => `${files(left)} en pausa`,
  finished: (count: number) => (count === 1 ? '1 archivo subido' : `${files(count)} subidos`),
  failed: (count: number) => `${files(count)} sin subir`,
  partly: (done: number, all: number) => `${formatCount(done)} de ${files(all)} subidos`,
  toChooseAgain: (count: number) => `${files(count)} por elegir de nuevo`,
  nothing: 'Nada que subir',
  reading: (count: number) =>
    count === 0 ? 'Leyendo las carpetas…' : `Leyendo las carpetas: ${files(count)} hasta ahora`,
  partOf: (done: string, all: string) => `${done} de ${all}`,
  speed: (size: string) => `${size}/s`,
  timeLeft: (time: string) => `quedan ${time}`,
  fewSeconds: 'unos segundos',
  seconds: (count: number) => `${count} s`,
  minutes: (count: number) => `${count} min`,
  hours: (count: number, minutes: number) => `${count} h ${minutes} min`,
  notDone: (failed: number) => `${formatCount(failed)} sin subir`,
  continuesLater:
    'Puedes cerrar esta página. Las subidas continúan cuando vuelvas a abrirla en este navegador.',
  keepOpen: 'Mantén esta página abierta hasta que terminen las subidas.',
  systemFiles: (count: number) =>
    `${count === 1 ? '1 archivo del sistema omitido' : `${formatCount(count)} archivos del sistema omitidos`} (como .DS_Store y Thumbs.db)`,
  emptyFolders: (count: number) =>
    count === 1 ? '1 carpeta vacía omitida' : `${formatCount(count)} carpetas vacías omitidas`,
  unreadableFolders: (count: number) =>
    count === 1
      ? 'No se pudo leer 1 carpeta. No se subió nada de ella.'
      : `No se pudieron leer ${formatCount(count)} carpetas. No se subió nada de ellas.`,
  duplicates: (count: number) =>
    count === 1
      ? '1 archivo con el mismo nombre, tamaño y fecha ya está en la lista. No se añadió de nuevo.'
      : `${files(count)} con el mismo nombre, tamaño y fecha ya están en la lista. No se añadieron de nuevo.`,
  addAgain: 'Añadir de nuevo',
  copy: 'Copiar enlaces',
  retryFailed: 'Reintentar los fallidos',
  showMore: (count: number) => `Mostrar ${formatCount(count)} más`,
  overall: 'Todas las subidas',
  uploadOf: (name: string) => `Subida de ${name}`,
  progress: (sent: string, size: string) => `${sent} de ${size}`,
  waiting: 'En espera',
  inProgress: 'Subiendo',
  pausedAll: 'En pausa',
  pausedAt: (sent: string, size: string) => `En pausa: ${sent} de ${size}`,
  done: 'Subido',
  chooseAgain: 'Elige este archivo de nuevo para continuar',
  pause: (name: string) => `Pausar ${name}`,
  resume: (name: string) => `Reanudar ${name}`,
  retry: (name: string) => `Reintentar ${name}`,
  cancel: (name: string) => `Cancelar ${name}`,
  pauseAll: 'Pausar todo',
  resumeAll: 'Reanudar todo',
  collapse: 'Mostrar menos',
  expand: 'Mostrar todas las subidas',
  close: 'Cerrar la lista de subidas',
  cancelAll: 'Cancelar todo',
  more: (count: number) => `y ${formatCount(count)} más`,
  continued: (count: number) => `Continúan ${files(count)} de tu última visita.`,
  notAllowed:
    'Este token no puede subir archivos. Inicia sesión con un token que tenga el permiso media:write.',
  unknown:
    'El servidor rechazó este archivo sin dar un motivo. Inténtalo de nuevo; si se repite, mira el registro del servidor.',
  unreadable: 'No se pudo leer este archivo: se movió o eliminó, o no tienes permiso para leerlo.',
  changed: 'Este archivo se cambió, movió o eliminó después de elegirlo. Elígelo de nuevo.',
  tooLarge: 'Este archivo es mayor de lo que permite el servidor.',
  noRoom: (limit: string) => `Este archivo no cabe: el bucket está limitado a ${limit}.`,
  tooLargeFor: (limit: string) =>
    `Este archivo es demasiado grande: el servidor permite hasta ${limit} por archivo.`,
  delayed: 'Las subidas empiezan cuando el servidor vuelva a responder.',
  notLoaded: 'No se pudo cargar el programa de subida. Comprueba tu conexión y recarga la página.',
}

export const es: Texts = {
  product: 'Mediabucket',
  files,
  unnamed: 'Archivo sin nombre',
  byte: '1 byte',
  units: ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'],
  close: 'Cerrar',
  cancel: 'Cancelar',
  dismiss: 'Descartar',
  tryAgain: 'Reintentar',
  notLoaded: 'No se pudo cargar. Comprueba tu conexión y recarga la página.',
  skipToMedia: 'Saltar a los archivos',
  back: 'Volver a los archivos',
  done: 'Listo',
  copied: 'Copiado.',
  notCopied: 'El navegador no lo copió. Selecciona el texto y cópialo.',
  /** What `#trash` and similar addresses show, instead of files. */
  sections: { trash: 'Papelera', tokens: 'Tokens', webhooks: 'Webhooks' },

  signIn: {
    title: 'Inicia sesión en tu bucket',
    about: 'Introduce el token de acceso del bucket.',
    token: 'Token de acceso',
    show: 'Mostrar el token',
    hide: 'Ocultar el token',
    keep: 'Mantener la sesión durante un día',
    keepHint: 'En un equipo compartido, desmarca esta casilla. La sesión terminará al cerrar esta pestaña.',
    submit: 'Iniciar sesión',
    busy: 'Iniciando sesión…',
    noToken:
      '¿No tienes un token? El servidor muestra uno al iniciarse por primera vez. Para crear otro, ejecuta «npx mediabucket token create --bucket default».',
    missing: 'Introduce un token.',
    malformed: 'Esto no es un token. Los tokens empiezan por «mbkt_» o «mbks_» y no contienen espacios.',
    refused: 'Este token no es válido. Está mal escrito, caducado o revocado. Compruébalo o usa otro.',
    cannotRead: (scopes: string) =>
      `Este token no puede ver archivos. Sus permisos: ${scopes}. Usa un token con media:read.`,
    noScopes: 'ninguno',
    ended: 'Se cerró tu sesión porque el token caducó o fue revocado. Inicia sesión con otro token.',
    signedOut: 'Has cerrado la sesión.',
    withIssuer: (name: string) => `Iniciar sesión con ${name}`,
    or: 'o con un token',
    issuerFailed: 'No se pudo iniciar sesión. Inténtalo de nuevo.',
    expired: 'Tu sesión ha caducado. Inicia sesión de nuevo.',
    dayPassed: 'Tu sesión terminó después de 24 horas. Inicia sesión de nuevo.',
    resuming: 'Abriendo tu bucket…',
  },

  header: {
    upload: 'Subir',
    uploadFolder: 'Subir una carpeta',
    signOut: 'Cerrar sesión',
    used: (size: string) => `${size} en uso`,
    usedOf: (size: string, limit: string) => `${size} de ${limit}`,
    itemsOf: (count: number, limit: number) => `${formatCount(count)} de ${formatCount(limit)} archivos`,
    usage: 'Espacio en uso',
  },

  settings: {
    label: 'Ajustes',
    theme: 'Tema',
    themes: { system: 'Como el sistema', light: 'Claro', dark: 'Oscuro' },
    language: 'Idioma',
  },

  signOut: {
    title: '¿Cerrar la sesión ahora?',
    about: (left: number) =>
      left === 1
        ? '1 archivo aún se está subiendo. Al cerrar la sesión se cancela.'
        : `${formatCount(left)} archivos aún se están subiendo. Al cerrar la sesión se cancelan.`,
    stay: 'Seguir con la sesión',
    leave: 'Cerrar sesión',
  },

  listing: {
    private: 'Privado',
    privateHint: 'Los archivos necesitan un token del bucket o un enlace que caduca.',
    noThumbnail: 'Sin vista previa: la imagen está dañada o es demasiado grande',
    loading: 'Cargando los archivos…',
    failed: 'No se pudieron cargar los archivos',
    empty: 'Este bucket está vacío',
    emptyHint: 'Suelta archivos o carpetas en esta página, pega una imagen o elige archivos abajo.',
    ask: 'Pedir archivos',
    emptyReadOnlyHint: 'Para subir archivos, inicia sesión con un token que tenga el permiso media:write.',
    chooseFiles: 'Elegir archivos',
    chooseFolder: 'Elegir una carpeta',
  },

  view: { label: 'Vista', grid: 'Cuadrícula', list: 'Lista' },

  filter: {
    label: 'Buscar y filtrar',
    search: 'Buscar por nombre',
    kind: 'Tipo',
    labels: 'Etiquetas',
    chosenLabels: 'Etiquetas elegidas',
    removeLabel: (label: string) => `Quitar ${label}`,
    anyValue: 'Todas',
    noLabels: 'Ningún archivo tiene etiquetas.',
    kinds: {
      all: 'Todos los tipos',
      image: 'Imágenes',
      video: 'Vídeos',
      audio: 'Audio',
      document: 'Documentos',
      other: 'Otros archivos',
    },
    time: 'Fecha',
    times: {
      all: 'Cualquier fecha',
      day: 'Últimas 24 horas',
      week: 'Últimos 7 días',
      month: 'Últimos 30 días',
      year: 'Último año',
    },
    clear: 'Quitar los filtros',
    matches: ({ count, isExact }: { count: number; isExact: boolean }) =>
      !isExact
        ? count === 1
          ? 'Coincide al menos 1 archivo'
          : `Coinciden al menos ${formatCount(count)} archivos`
        : count === 0
          ? 'Ningún archivo coincide'
          : count === 1
            ? '1 archivo coincide'
            : `${formatCount(count)} archivos coinciden`,
    none: 'Ningún archivo coincide',
    noneHint: 'Cambia la búsqueda o quita los filtros.',
  },

  timeline: {
    day: (day: string) => `Archivos: ${day}`,
    loaded: 'Los archivos están cargados',
    newestFirst: 'Más recientes primero',
    oldestFirst: 'Más antiguos primero',
    switchOrder: 'Invertir el orden',
    orderBy: 'Orden',
    orderKeys: {
      added: 'Por fecha de subida',
      taken: 'Por fecha de la toma',
      name: 'Por nombre',
    },
    names: {
      ascending: 'De la A a la Z',
      descending: 'De la Z a la A',
    },
    noName: 'Sin nombre',
  },

  selection: {
    label: 'Archivos seleccionados',
    select: (name: string) => `Seleccionar ${name}`,
    count: (count: number) => (count === 1 ? '1 seleccionado' : `${formatCount(count)} seleccionados`),
    copy: 'Copiar enlaces',
    delete: 'Eliminar',
    clear: 'Anular la selección',
    all: 'Seleccionar todo',
    selecting: 'Seleccionando…',
    copyAs: 'Copiar enlaces como…',
    form: { plain: 'Enlaces simples', markdown: 'Markdown', html: 'HTML' },
    zip: 'Descargar como ZIP',
    addLabel: 'Etiquetar',
    labelTitle: (count: number) => (count === 1 ? 'Etiquetar este archivo' : `Etiquetar ${files(count)}`),
    labelled: (count: number) => `Etiqueta puesta: ${files(count)}.`,
    zipStarted: (count: number) =>
      `Empaquetando ${files(count)}. La descarga empieza cuando el archivo ZIP está completo.`,
    zipFailed: 'No se pudo crear el archivo ZIP, porque un archivo no se pudo descargar. Inténtalo de nuevo.',
  },

  deletion,

  link: {
    forEveryone: 'Para todos, hasta que el enlace caduque:',
    forTokens: 'Solo con un token del bucket:',
    withoutExpiry: 'Enlace sin caducidad',
    needsToken: 'El bucket es privado: el enlace solo funciona con un token del bucket.',
    lifetime: (hours: number) =>
      hours < 24 ? '1 hora' : hours === 24 ? '1 día' : `${formatCount(hours / 24)} días`,
    validFor: (time: string) => `Válido durante ${time}`,
    copied: (count: number) => (count === 1 ? 'Enlace copiado.' : `${formatCount(count)} enlaces copiados.`),
    failed: 'El navegador impidió copiar. Copia el enlace desde los detalles del archivo.',
  },

  viewer,

  uploads,

  connection: {
    lost: 'No se puede conectar con el servidor.',
    offline: 'Estás sin conexión.',
    retrying: 'Reconectando…',
    retryNow: 'Probar ahora',
    back: 'Conexión restablecida.',
  },

  errors: {
    unreachable: 'No se puede conectar con el servidor. Comprueba que funciona y que tienes conexión.',
    unexpected:
      'Ocurrió un error inesperado. Inténtalo de nuevo; si se repite, mira el registro del servidor.',
  },
}
